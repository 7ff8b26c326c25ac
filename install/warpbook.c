/*
 * All programs in one file. It is called by a program's name, through a link (`generate ...`), or
 * by its own with the program's name first (`warpbook generate ...`).
 */
#include <stdio.h>
#include <string.h>

#include "common/base/version.h"

typedef int command(int argc, char **argv);

command classify_command, evaluate_command, generate_command, perplexity_command, profile_command,
    train_command, train_vocab_command;

static const struct {
    const char *name;
    command *run;
    const char *summary;
} commands[] = {
    {"classify", classify_command, "classifies texts with a BERT"},
    {"evaluate", evaluate_command, "tests a classifier on a data set"},
    {"generate", generate_command, "writes text with a Llama2"},
    {"perplexity", perplexity_command, "tells how well a Llama2 predicts a text"},
    {"profile", profile_command, "shows where a classifier's time goes"},
    {"train", train_command, "trains a BERT, a Llama2 or a GPT-NeoX"},
    {"train_vocab", train_vocab_command, "learns a vocabulary from texts"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static command *find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run;
        }
    }
    return NULL;
}

static int help(void) {
    printf("warpbook: the programs of Warpbook\n\nusage: warpbook PROGRAM [ARGUMENTS]\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        printf("  %-12s %s\n", commands[i].name, commands[i].summary);
    }
    printf("\n'warpbook PROGRAM --help' lists the flags of one.\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

static int by_first_argument(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return help();
    }
    if (strcmp(word, "--version") == 0) {
        printf("warpbook (Warpbook %s)\n", WARPBOOK_VERSION);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    command *run = find(word);
    if (run == NULL) {
        fprintf(stderr, "warpbook: no program '%s'; --help lists them\n", word);
        return 1;
    }
    return run(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    const char *path = argc > 0 ? argv[0] : "";
    const char *slash = strrchr(path, '/');
    command *run = find(slash != NULL ? slash + 1 : path);
    return run != NULL ? run(argc, argv) : by_first_argument(argc, argv);
}

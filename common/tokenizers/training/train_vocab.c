/* A program that learns a vocabulary from texts: BERT's vocab.txt, or llama2.c's tokenizer.bin. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/texts/text_flags.h"
#include "common/tokenizers/training/vocab.h"

enum { MOST_SIZE = 1 << 20 };

static const char program[] = "train_vocab";

struct options {
    struct vocab_sources sources;
    const char *type, *output;
    int size, characters, min_count, skip, limit;
    bool lowercase;
    enum vocab_kind kind;
};

/* ---- The command line ---- */

static enum status check_numbers(const struct options *o, struct error *error) {
    int least = (int)vocab_special_count(o->kind) + 1;
    if (o->size < least || o->size > MOST_SIZE) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--size is %d, must be from %d to %d for %s", o->size, least, MOST_SIZE,
                         o->type);
    }
    if (o->characters < 1 || o->min_count < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--characters is %d, --min-count is %d; both must be at least 1",
                         o->characters, o->min_count);
    }
    if (o->skip < 0 || o->limit < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--skip is %d, --limit is %d; neither may be negative", o->skip, o->limit);
    }
    return STATUS_OK;
}

static enum status check_options(struct options *o, struct error *error) {
    if (strcmp(o->type, "wordpiece") != 0 && strcmp(o->type, "bpe") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--type is 'wordpiece' or 'bpe', not '%s'",
                         o->type);
    }
    o->kind = strcmp(o->type, "bpe") == 0 ? VOCAB_BPE : VOCAB_WORDPIECE;
    if (o->sources.data == NULL || o->output == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--data PATH and --output FILE are required; --help has examples");
    }
    TRY(check_numbers(o, error));
    o->sources.skip = (size_t)o->skip;
    o->sources.limit = (size_t)o->limit;
    return file_check_writable(o->output, error);
}

static const char epilogue[] =
    "WordPiece: splits texts into words as BERT's tokenizer does, lower-case and without\n"
    "accents. BPE: a word is a run of letters or of signs with the blank before it, or\n"
    "one digit; characters without a piece are spelt in bytes. Pieces are made from\n"
    "characters by merging the most frequent pair again and again; of equally frequent\n"
    "pairs the first in byte order. The file depends only on the words: the same texts\n"
    "in any order, in one file or many, give the same file.\n"
    "\n"
    "examples:\n"
    "  train_vocab --type wordpiece --size 8000 --dataset imdb --data aclImdb \\\n"
    "      --split train,unsup --output vocab.txt\n"
    "  train_vocab --type bpe --size 4096 --dataset text --data a.txt,b.txt \\\n"
    "      --output tokenizer.bin\n"
    "  train_vocab --size 4000 --data tickets.csv --text-column body --output vocab.txt";

static enum status read_options(struct options *o, int argc, char **argv, bool *help,
                                struct error *error) {
    const struct flag table[] = {
        {"type", 0, FLAG_STRING, &o->type, "TYPE",
         "wordpiece: BERT's vocab.txt; bpe: llama2.c's tokenizer.bin"},
        {"size", 'n', FLAG_INT, &o->size, "N", "most pieces, including the special ones"},
        {"data", 0, FLAG_STRING, &o->sources.data, "PATH[,...]", "files or folders to read"},
        TEXT_FLAGS_TEXT(&o->sources.columns),
        {"dataset", 0, FLAG_STRING, &o->sources.dataset, "NAME",
         "imdb, agnews, sample, text (paragraphs; lines if the file has no blank line) or file; "
         "default: by the ending: .txt is text; .csv, .tsv and .jsonl are file"},
        {"split", 0, FLAG_STRING, &o->sources.split, "NAME[,...]",
         "splits of the data set: one for each path, or several of one path"},
        {"skip", 0, FLAG_INT, &o->skip, "N", "texts to skip, of each path and split"},
        {"limit", 0, FLAG_INT, &o->limit, "N", "most texts of each path and split; 0: all"},
        {"min-count", 0, FLAG_INT, &o->min_count, "N",
         "a character or pair that occurs less often does not become a piece"},
        {"characters", 0, FLAG_INT, &o->characters, "N",
         "most different characters; others make a word [UNK] (bpe: are spelt in bytes)"},
        {"lowercase", 0, FLAG_SWITCH, &o->lowercase, NULL,
         "wordpiece: remove case and accents, as this project's tokenizer does"},
        {"output", 'o', FLAG_STRING, &o->output, "FILE",
         "vocabulary to write; an existing file is replaced at the end"},
    };
    const struct flags flags = {
        .program = program,
        .positional = "",
        .summary = "learns a vocabulary from texts",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = epilogue,
    };
    struct arguments arguments;
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    *help = arguments.help;
    if (status == STATUS_OK && !*help && arguments.count > 0) {
        status = error_set(error, STATUS_INVALID_ARGUMENT,
                           "unexpected argument '%s'; --help lists the flags", arguments.values[0]);
    }
    free(arguments.values);
    return status == STATUS_OK && !*help ? check_options(o, error) : status;
}

/* ---- The report ---- */

static uint64_t word_bytes(const struct vocab_words *words) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < words->count; i++) {
        bytes += words->words[i].length * words->words[i].count;
    }
    return bytes;
}

static void report(const struct options *o, const struct vocab_words *words,
                   const struct vocab_pieces *pieces, size_t texts) {
    size_t special = vocab_special_count(o->kind), all = special + pieces->count;
    printf("%s: %zu pieces: %zu special, %zu characters, %zu merged\n", o->output, all, special,
           pieces->characters, pieces->count - pieces->characters);
    printf("%zu texts, %llu words, %zu of them different\n", texts,
           (unsigned long long)words->total, words->count);
    printf("%.3f pieces a word", (double)pieces->tokens / (double)words->total);
    if (o->kind == VOCAB_BPE) {
        printf(", %.3f bytes a piece\n", (double)word_bytes(words) / (double)pieces->tokens);
    } else {
        printf(", %.4f%% of the words are [UNK]\n",
               100.0 * (double)pieces->unknown / (double)words->total);
    }
    if (all < (size_t)o->size) {
        fprintf(stderr,
                "%s: %zu pieces instead of the %d of --size: no other pair occurs %d times\n",
                program, all, o->size, o->min_count);
    }
}

/* ---- The program ---- */

static enum status write_pieces(const struct options *o, const struct vocab_pieces *pieces,
                                struct error *error) {
    char *data;
    size_t size;
    enum status status = vocab_write(o->kind, pieces, &data, &size);
    status = status == STATUS_OK
                 ? file_write(o->output, data, size, error)
                 : error_set(error, status, "%s: %s", o->output, status_message(status));
    free(data);
    return status;
}

static enum status write_vocabulary(const struct options *o, const struct vocab_words *words,
                                    size_t texts, struct error *error) {
    const struct vocab_rules rules = {
        .kind = o->kind,
        .pieces = (size_t)o->size - vocab_special_count(o->kind),
        .characters = (size_t)o->characters,
        .min_count = (uint64_t)o->min_count,
    };
    struct vocab_pieces pieces;
    TRY(vocab_learn(&pieces, words, &rules, error));
    report(o, words, &pieces, texts);
    enum status status = write_pieces(o, &pieces, error);
    vocab_pieces_free(&pieces);
    return status;
}

static enum status run(const struct options *o, struct error *error) {
    struct vocab_words words = {0};
    size_t texts;
    enum status status =
        vocab_sources_count(&o->sources, o->kind, o->lowercase, &words, &texts, error);
    if (status == STATUS_OK) {
        status = write_vocabulary(o, &words, texts, error);
    }
    vocab_words_free(&words);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status =
            error_set(error, STATUS_IO, "cannot write to standard output: %s", strerror(errno));
    }
    return status;
}

int main(int argc, char **argv) {
    struct options options = {
        .sources = {.split = "train"},
        .type = "wordpiece",
        .size = 8000,
        .characters = 1000,
        .min_count = 2,
        .lowercase = true,
    };
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_options(&options, argc, argv, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&options, &error);
    }
    return status == STATUS_OK ? 0 : report_failure(program, &error, status);
}

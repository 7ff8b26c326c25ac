#include "common/checkpoints/bert/bert_example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum status bert_shape_parse(const char *name, struct bert_config *config, struct error *error) {
    *config = (struct bert_config){.types = 2, .norm_eps = 1e-12f, .activation = NN_GELU};
    if (strcmp(name, "tiny") == 0) {
        config->C = 64;
        config->hidden = 256;
        config->L = 2;
        config->NH = 2;
        config->T = 128;
        return STATUS_OK;
    }
    if (strcmp(name, "base") == 0) {
        config->C = 768;
        config->hidden = 3072;
        config->L = 12;
        config->NH = 12;
        config->T = 512;
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--shape is 'tiny' or 'base', not '%s'", name);
}

enum { LINE = 40, SPECIALS = 5, PRINTABLE = '~' - ' ', LETTERS = PRINTABLE - 26 };

static const char *const SPECIAL[SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

enum status bert_letters_vocabulary(size_t pieces, char **text, size_t *size) {
    size_t own = SPECIALS + 2 * LETTERS;
    size_t all = pieces > own ? pieces : own;
    size_t bytes;
    *text = checked_multiply(all, LINE, &bytes) ? malloc(bytes) : NULL;
    *size = 0;
    if (*text == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    char *at = *text;
    for (int i = 0; i < SPECIALS; i++) {
        at += sprintf(at, "%s\n", SPECIAL[i]);
    }
    for (char c = '!'; c <= '~'; c++) {
        if (c < 'A' || c > 'Z') {
            at += sprintf(at, "%c\n##%c\n", c, c);
        }
    }
    for (size_t i = own; i < all; i++) {
        at += sprintf(at, "[unused%zu]\n", i - own);
    }
    *size = (size_t)(at - *text);
    return STATUS_OK;
}

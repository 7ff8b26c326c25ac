#include "common/tokenizers/training/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tokenizers/bpe/bpe.h"

size_t vocab_special_count(enum vocab_kind kind) {
    return kind == VOCAB_WORDPIECE ? VOCAB_WORDPIECE_SPECIAL : VOCAB_BPE_SPECIAL;
}

static enum status write_wordpiece(const struct vocab_pieces *p, char **data, size_t *size) {
    FILE *stream = open_memstream(data, size);
    if (stream == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", stream);
    for (size_t i = 0; i < p->count; i++) {
        const struct vocab_piece *piece = &p->pieces[i];
        fprintf(stream, "%s%.*s\n", piece->inner ? "##" : "", (int)piece->length,
                p->text + piece->start);
    }
    return fclose(stream) == 0 ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* ---- llama2.c's file ---- */

/* The tokens of a vocabulary, in the form that bpe_serialize() needs. */
struct table {
    char *text; /* each token is followed by a NUL */
    size_t used;
    const char **tokens; /* (count) */
    float *scores;       /* (count) */
    size_t count;
};

static void add(struct table *t, const char *text, size_t length, float score) {
    char *copy = memcpy(t->text + t->used, text, length);
    copy[length] = '\0';
    t->used += length + 1;
    t->tokens[t->count] = copy;
    t->scores[t->count++] = score;
}

static void add_special(struct table *t) {
    /* llama2.c's files have line feeds around BOS and EOS. */
    static const char *const special[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        add(t, special[i], strlen(special[i]), 0.0f);
    }
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        int length = snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        add(t, name, (size_t)length, 0.0f);
    }
}

/* Pieces [first, end), scored from *score downward. */
static void add_pieces(struct table *t, const struct vocab_pieces *p, size_t first, size_t end,
                       int32_t *score) {
    for (size_t i = first; i < end; i++) {
        add(t, p->text + p->pieces[i].start, p->pieces[i].length, (float)(*score)--);
    }
}

static enum status write_bpe(const struct vocab_pieces *p, char **data, size_t *size) {
    enum { SPECIAL_BYTES = 8 /* of the longest special token, with its NUL */ };
    size_t count = VOCAB_BPE_SPECIAL + p->count, bytes = (size_t)VOCAB_BPE_SPECIAL * SPECIAL_BYTES;
    for (size_t i = 0; i < p->count; i++) {
        bytes += p->pieces[i].length + (size_t)1;
    }
    struct table t = {.text = malloc(bytes),
                      .tokens = calloc(count, sizeof *t.tokens),
                      .scores = calloc(count, sizeof *t.scores)};
    enum status status = STATUS_OUT_OF_MEMORY;
    if (t.text != NULL && t.tokens != NULL && t.scores != NULL) {
        int32_t score = 0;
        unsigned char *file;
        add_special(&t);
        add_pieces(&t, p, p->characters, p->count, &score);
        add_pieces(&t, p, 0, p->characters, &score);
        status = bpe_serialize(t.tokens, t.scores, t.count, &file, size);
        *data = (char *)file;
    }
    free(t.text);
    free(t.tokens);
    free(t.scores);
    return status;
}

enum status vocab_write(enum vocab_kind kind, const struct vocab_pieces *pieces, char **data,
                        size_t *size) {
    *data = NULL;
    *size = 0;
    return kind == VOCAB_WORDPIECE ? write_wordpiece(pieces, data, size)
                                   : write_bpe(pieces, data, size);
}

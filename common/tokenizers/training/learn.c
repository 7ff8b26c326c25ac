#include "common/tokenizers/training/vocab.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "common/base/terminal.h"
#include "common/base/utf8.h"
#include "common/tokenizers/training/learn_internal.h"

enum { NO_PIECE = -1 /* is never merged */, MOST_BYTES = 4 /* of a character */ };

/* A word, split into pieces. */
struct pieced {
    size_t start;   /* its first piece in `tokens` */
    uint32_t count; /* its number of pieces, which falls as pieces merge */
};

struct learner {
    const struct vocab_words *words;
    const struct vocab_rules *rules;
    struct vocab_alphabet alphabet;
    struct pairs pairs;
    int32_t *tokens;       /* the pieces of all words */
    struct pieced *pieced; /* (words->count) */
    uint64_t unknown;      /* WordPiece: words with a character that is no piece */
};

/* ---- Preparation ---- */

static enum status add_characters(struct learner *l, bool inner) {
    for (size_t i = 0; i < l->alphabet.count; i++) {
        const struct vocab_character *c = &l->alphabet.characters[i];
        utf8proc_uint8_t bytes[MOST_BYTES];
        if (inner && c->inner < 0) {
            continue;
        }
        size_t length = (size_t)utf8proc_encode_char(c->code_point, bytes);
        TRY(pairs_add_character(&l->pairs, (const char *)bytes, length, inner));
    }
    return STATUS_OK;
}

/* Splits a word into pieces of one character each. If a character is no piece, BPE gets NO_PIECE
   for each of its bytes, WordPiece a single NO_PIECE for the whole word. */
static enum status split_word(struct learner *l, const struct vocab_word *word, int32_t *tokens,
                              uint32_t *count, struct error *error) {
    bool wordpiece = l->rules->kind == VOCAB_WORDPIECE;
    *count = 0;
    for (size_t offset = 0; offset < word->length;) {
        size_t start = offset;
        int32_t code_point;
        TRY(utf8_next(l->words->text + word->start, word->length, &offset, &code_point, error));
        const struct vocab_character *c = vocab_alphabet_find(&l->alphabet, code_point);
        if (c == NULL && wordpiece) {
            tokens[0] = NO_PIECE;
            *count = 1;
            l->unknown += word->count;
            return STATUS_OK;
        }
        for (size_t i = start; i < offset && c == NULL; i++) {
            tokens[(*count)++] = NO_PIECE;
        }
        if (c != NULL) {
            tokens[(*count)++] = wordpiece && start > 0 ? c->inner : c->first;
        }
    }
    return STATUS_OK;
}

/* Whether the word's pieces `at` and `at + 1` may merge; if so, *candidate is their pair. */
static enum status pair_at(struct learner *l, const struct pieced *word, uint32_t at,
                           uint32_t *candidate, bool *found) {
    const int32_t *tokens = l->tokens + word->start;
    *found = at + 1 < word->count && tokens[at] != NO_PIECE && tokens[at + 1] != NO_PIECE;
    return *found ? pairs_find(&l->pairs, tokens[at], tokens[at + 1], candidate) : STATUS_OK;
}

static enum status count_pairs(struct learner *l, size_t word) {
    for (uint32_t at = 0; at + 1 < l->pieced[word].count; at++) {
        uint32_t candidate;
        bool found;
        TRY(pair_at(l, &l->pieced[word], at, &candidate, &found));
        if (found) {
            TRY(pairs_add(&l->pairs, candidate, (uint32_t)word, l->words->words[word].count));
        }
    }
    return STATUS_OK;
}

static enum status split_words(struct learner *l, struct error *error) {
    size_t at = 0;
    l->tokens = calloc(l->words->text_size + 1, sizeof *l->tokens);
    l->pieced = calloc(l->words->count + 1, sizeof *l->pieced);
    if (l->tokens == NULL || l->pieced == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < l->words->count; i++) {
        l->pieced[i].start = at;
        TRY(split_word(l, &l->words->words[i], l->tokens + at, &l->pieced[i].count, error));
        TRY(count_pairs(l, i));
        at += l->pieced[i].count;
    }
    return pairs_update_heap(&l->pairs);
}

/* ---- Merging ---- */

/* The first position from `at` on where the word has these two pieces; word->count: none. */
static uint32_t find_in_word(const struct learner *l, const struct pieced *word, int32_t left,
                             int32_t right, uint32_t at) {
    const int32_t *tokens = l->tokens + word->start;
    while (at + 1 < word->count && (tokens[at] != left || tokens[at + 1] != right)) {
        at++;
    }
    return at + 1 < word->count ? at : word->count;
}

/* Subtracts a word's pairs from the counts. */
static enum status uncount_pairs(struct learner *l, size_t word) {
    for (uint32_t at = 0; at + 1 < l->pieced[word].count; at++) {
        uint32_t candidate;
        bool found;
        TRY(pair_at(l, &l->pieced[word], at, &candidate, &found));
        if (found) {
            l->pairs.candidates[candidate].count -= l->words->words[word].count;
        }
    }
    return STATUS_OK;
}

/* Counts a word's pairs again. Pairs with the new piece are new in this word; the other pairs have
   the word in their lists already. */
static enum status recount_pairs(struct learner *l, size_t word, int32_t piece) {
    const int32_t *tokens = l->tokens + l->pieced[word].start;
    uint64_t times = l->words->words[word].count;
    for (uint32_t at = 0; at + 1 < l->pieced[word].count; at++) {
        uint32_t candidate;
        bool found;
        TRY(pair_at(l, &l->pieced[word], at, &candidate, &found));
        if (found && (tokens[at] == piece || tokens[at + 1] == piece)) {
            TRY(pairs_add(&l->pairs, candidate, (uint32_t)word, times));
        } else if (found) {
            l->pairs.candidates[candidate].count += times;
        }
    }
    return STATUS_OK;
}

/* Replaces each occurrence of the two pieces in the word, from `at` on, left to right. */
static void replace(struct learner *l, struct pieced *word, int32_t left, int32_t right,
                    int32_t piece, uint32_t at) {
    int32_t *tokens = l->tokens + word->start;
    uint32_t kept = at;
    while (at < word->count) {
        uint32_t end = find_in_word(l, word, left, right, at);
        while (at < end) {
            tokens[kept++] = tokens[at++];
        }
        if (end < word->count) {
            tokens[kept++] = piece;
            at += 2;
        }
    }
    word->count = kept;
}

static enum status merge_in_word(struct learner *l, size_t word, int32_t left, int32_t right,
                                 int32_t piece) {
    struct pieced *pieced = &l->pieced[word];
    uint32_t at = find_in_word(l, pieced, left, right, 0);
    if (at == pieced->count) {
        return STATUS_OK;
    }
    TRY(uncount_pairs(l, word));
    replace(l, pieced, left, right, piece, at);
    return recount_pairs(l, word, piece);
}

/* Replaces the pair by the newest piece in every word that has the pair. */
static enum status merge(struct learner *l, uint32_t candidate) {
    struct candidate c = l->pairs.candidates[candidate];
    int32_t piece = (int32_t)l->pairs.piece_count - 1;
    l->pairs.candidates[candidate].words = NULL; /* the pair cannot occur again */
    l->pairs.candidates[candidate].word_count = 0;
    l->pairs.candidates[candidate].word_capacity = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c.word_count && status == STATUS_OK; i++) {
        status = merge_in_word(l, c.words[i], c.left, c.right, piece);
    }
    free(c.words);
    return status == STATUS_OK ? pairs_update_heap(&l->pairs) : status;
}

/* Makes pieces until there are enough, or until no pair is frequent enough. */
static enum status make_pieces(struct learner *l, struct progress *progress) {
    while (l->pairs.piece_count < l->rules->pieces) {
        uint32_t candidate = 0;
        bool found;
        TRY(pairs_take(&l->pairs, &candidate, &found));
        if (!found || l->pairs.candidates[candidate].count < l->rules->min_count) {
            break;
        }
        TRY(pairs_make_piece(&l->pairs, candidate));
        TRY(merge(l, candidate));
        progress_update(progress, l->pairs.piece_count);
    }
    return STATUS_OK;
}

static enum status learn(struct learner *l) {
    struct progress progress = progress_create("merging", l->rules->pieces);
    enum status status = make_pieces(l, &progress);
    progress_finish(&progress);
    return status;
}

/* ---- The whole training ---- */

/* Moves the pieces to the caller. */
static void move_pieces(struct learner *l, struct vocab_pieces *out) {
    *out = (struct vocab_pieces){.text = l->pairs.text,
                                 .pieces = l->pairs.pieces,
                                 .count = l->pairs.piece_count,
                                 .characters = l->alphabet.pieces,
                                 .unknown = l->unknown};
    l->pairs.text = NULL;
    l->pairs.pieces = NULL;
    for (size_t i = 0; i < l->words->count; i++) {
        out->tokens += l->pieced[i].count * l->words->words[i].count;
    }
}

static enum status learn_from_words(struct learner *l, struct error *error) {
    TRY(pairs_create(&l->pairs));
    TRY(add_characters(l, false));
    if (l->rules->kind == VOCAB_WORDPIECE) {
        TRY(add_characters(l, true));
    }
    TRY(split_words(l, error));
    return learn(l);
}

static enum status run(struct learner *l, struct error *error) {
    TRY(vocab_alphabet_create(&l->alphabet, l->words, l->rules, error));
    if (l->alphabet.pieces > l->rules->pieces) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%zu characters are %zu pieces alone, more than the %zu there is room for",
                         l->alphabet.count, l->alphabet.pieces, l->rules->pieces);
    }
    enum status status = learn_from_words(l, error);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "%s while learning from %zu words",
                                           status_message(status), l->words->count);
}

enum status vocab_learn(struct vocab_pieces *pieces, const struct vocab_words *words,
                        const struct vocab_rules *rules, struct error *error) {
    struct learner learner = {.words = words, .rules = rules};
    *pieces = (struct vocab_pieces){0};
    enum status status = run(&learner, error);
    if (status == STATUS_OK) {
        move_pieces(&learner, pieces);
    }
    free(learner.tokens);
    free(learner.pieced);
    pairs_free(&learner.pairs);
    vocab_alphabet_free(&learner.alphabet);
    return status;
}

void vocab_pieces_free(struct vocab_pieces *pieces) {
    free(pieces->text);
    free(pieces->pieces);
    *pieces = (struct vocab_pieces){0};
}

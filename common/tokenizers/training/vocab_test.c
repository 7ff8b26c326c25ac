/**
 * @file vocab_test.c
 * @brief Words, merges worked out by hand, and files that the project's tokenizers read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe.h"
#include "common/tokenizers/training/vocab.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

enum { ROOM = 4096 };

static void count(struct vocab_words *words, enum vocab_kind kind, const char *text) {
    struct error error = {0};
    EXPECT_OK(vocab_count_text(words, kind, true, text, strlen(text), &error));
    EXPECT_STR_EQ("", error.message);
}

/* "aab*2|b*1": the counted words, in the order of their first occurrence. */
static const char *list_words(const struct vocab_words *words, char *out) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < words->count; i++) {
        const struct vocab_word *w = &words->words[i];
        used +=
            (size_t)snprintf(out + used, ROOM - used, "%s%.*s*%llu", i > 0 ? "|" : "",
                             (int)w->length, words->text + w->start, (unsigned long long)w->count);
    }
    return out;
}

/* "a b ##a|aa aab": characters, then merges. */
static const char *list_pieces(const struct vocab_pieces *pieces, char *out) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < pieces->count; i++) {
        const struct vocab_piece *p = &pieces->pieces[i];
        const char *before = i == 0 ? "" : i == pieces->characters ? "|" : ",";
        used += (size_t)snprintf(out + used, ROOM - used, "%s%s%.*s", before, p->inner ? "##" : "",
                                 (int)p->length, pieces->text + p->start);
    }
    return out;
}

static void expect_words(enum vocab_kind kind, const char *text, const char *want) {
    struct vocab_words words = {0};
    char got[ROOM];
    count(&words, kind, text);
    EXPECT_STR_EQ(want, list_words(&words, got));
    vocab_words_free(&words);
}

C_TEST(words, wordpiece_words_are_the_tokenizers) {
    expect_words(VOCAB_WORDPIECE, "A b\ta, B.", "a*2|b*2|,*1|.*1");
    expect_words(VOCAB_WORDPIECE, "Don't caf\xc3\xa9", "don*1|'*1|t*1|cafe*1");
    expect_words(VOCAB_WORDPIECE, "x\xe4\xb8\x80y", "x*1|\xe4\xb8\x80*1|y*1");
    expect_words(VOCAB_WORDPIECE, " \n ", "");
    char longest[102];
    memset(longest, 'a', 101);
    longest[101] = '\0';
    expect_words(VOCAB_WORDPIECE, longest, "");
    struct vocab_words words = {0};
    EXPECT_OK(vocab_count_text(&words, VOCAB_WORDPIECE, false, "Ab \xc3\xa9x", 6, NULL));
    char got[ROOM];
    EXPECT_STR_EQ("Ab*1|\xc3\xa9x*1", list_words(&words, got));
    vocab_words_free(&words);
}

C_TEST(words, bpe_words_begin_with_their_blank) {
    expect_words(VOCAB_BPE, "ab ab ab", " ab*3");
    expect_words(VOCAB_BPE, "", "");
    expect_words(VOCAB_BPE, " ", "  *1");
    expect_words(VOCAB_BPE, "Don't", " Don*1|'t*1");
    expect_words(VOCAB_BPE, "a 'b' c'", " a*1| '*1|b*1|'*2| c*1");
    expect_words(VOCAB_BPE, "in 1998, I", " in*1| 1*1|9*2|8*1|,*1| I*1");
    expect_words(VOCAB_BPE, "a   b", " a*1|  *1| b*1");
    expect_words(VOCAB_BPE, "a\n\nb ", " a*1|\n\n*1|b*1| *1");
    expect_words(VOCAB_BPE, "<br /><br />", " <*1|br*2| /><*1| />*1");
    expect_words(VOCAB_BPE, "\xc3\xa9t\xc3\xa9", " \xc3\xa9t\xc3\xa9*1");
}

C_TEST(words, long_runs_are_cut) {
    struct vocab_words words = {0};
    char text[251];
    memset(text, 'a', 250);
    text[250] = '\0';
    count(&words, VOCAB_BPE, text);
    EXPECT_INT_EQ(3, words.count); /* a blank and 99, 100, 51 */
    EXPECT_INT_EQ(100, words.words[0].length);
    EXPECT_INT_EQ(51, words.words[2].length);
    vocab_words_free(&words);
}

C_TEST(words, bad_utf8_is_told_with_its_offset) {
    for (int kind = VOCAB_WORDPIECE; kind <= VOCAB_BPE; kind++) {
        struct vocab_words words = {0};
        EXPECT_ERROR_CONTAINS(
            STATUS_BAD_UTF8, "byte 3",
            vocab_count_text(&words, (enum vocab_kind)kind, true, "ab \xff", 4, &error));
        vocab_words_free(&words);
    }
}

C_TEST(words, many_are_found_again) {
    enum { MANY = 20000 };
    struct vocab_words words = {0};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            char text[16];
            int length = snprintf(text, sizeof text, "w%d", i);
            ASSERT_OK(vocab_words_add(&words, text, (size_t)length));
        }
    }
    EXPECT_INT_EQ(MANY, words.count);
    EXPECT_INT_EQ(2 * MANY, words.total);
    for (size_t i = 0; i < words.count; i++) {
        EXPECT_INT_EQ(2, words.words[i].count);
    }
    vocab_words_free(&words);
}

/* ---- Merges by hand ---- */

/* Words, what was learnt from them, and the file of it. */
struct learnt {
    struct vocab_words words;
    struct vocab_pieces pieces;
    char *data;
    size_t size;
};

/* Learns from the words. */
static void learn(struct learnt *l, struct vocab_rules rules) {
    struct error error = {0};
    EXPECT_OK(vocab_learn(&l->pieces, &l->words, &rules, &error));
    EXPECT_STR_EQ("", error.message);
}

static void learn_text(struct learnt *l, struct vocab_rules rules, const char *text) {
    *l = (struct learnt){.data = NULL};
    count(&l->words, rules.kind, text);
    learn(l, rules);
}

static bool learnt_write(struct learnt *l, enum vocab_kind kind) {
    return vocab_write(kind, &l->pieces, &l->data, &l->size) == STATUS_OK;
}

static void learnt_free(struct learnt *l) {
    free(l->data);
    vocab_pieces_free(&l->pieces);
    vocab_words_free(&l->words);
}

struct hand {
    enum vocab_kind kind;
    const char *text;
    size_t pieces;
    uint64_t min_count;
    const char *want;
    uint64_t tokens;
};

static void check_hand(const struct hand *h) {
    struct learnt l;
    char got[ROOM];
    learn_text(&l, (struct vocab_rules){h->kind, h->pieces, 100, h->min_count}, h->text);
    EXPECT_STR_EQ(h->want, list_pieces(&l.pieces, got));
    EXPECT_INT_EQ(h->tokens, l.pieces.tokens);
    learnt_free(&l);
}

C_TEST(merges, are_those_worked_out_by_hand) {
    static const char newest[] =
        "low low low low low lower lower newest newest newest newest newest newest widest widest "
        "widest";
    static const struct hand cases[] = {
        /* a+a and ##a+b come twice, "aa" is before "ab"; then aa+b twice. a+b came once. */
        {VOCAB_WORDPIECE, "aab aab ab b", 99, 2, "a,b,##a,##b|aa,aab", 5},
        {VOCAB_WORDPIECE, "aab aab ab b", 99, 1, "a,b,##a,##b|aa,aab,ab", 4},
        {VOCAB_WORDPIECE, "aab aab ab b", 5, 1, "a,b,##a,##b|aa", 7},
        {VOCAB_WORDPIECE, "aab aab ab b", 4, 1, "a,b,##a,##b", 9},
        /* Sennrich's example: es 9, then es+t 9; lo 7 before ow 7; low 7; ew 6, west 6, ne 6; ...
           of 3 each: dest, idest, widest; of 2 each: er, lower. */
        {VOCAB_WORDPIECE, newest, 99, 2,
         "d,e,i,l,n,o,r,s,t,w,##d,##e,##i,##l,##n,##o,##r,##s,##t,##w|##es,##est,lo,low,##ew,"
         "##ewest,newest,##dest,##idest,widest,##er,lower",
         16},
        /* Pairs that overlap count each: aa comes four times inside, twice at the beginning. Of aaa
           at the beginning and aaa inside, twice each, the beginning is before. */
        {VOCAB_WORDPIECE, "aaaa aaaa", 99, 2, "a,##a|##aa,aaa,aaaa", 2},
        /* Punctuation is never inside a word. */
        {VOCAB_WORDPIECE, "a, a, a.", 99, 1, ",,.,a,##a", 6},
        {VOCAB_BPE, "ab ab abc", 99, 1, " ,a,b,c| a, ab, abc", 3},
        {VOCAB_BPE, "ab ab abc", 99, 2, " ,a,b| a, ab", 4},
        /* "11" is no pair: digits stay alone. */
        {VOCAB_BPE, "11 11", 99, 2, " ,1| 1", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_hand(&cases[i]);
    }
}

C_TEST(merges, do_not_depend_on_the_order_of_words) {
    static const char *const texts[] = {"banana bandana and a band", "an anagram and a ban",
                                        "can a banana ban an ant", "nab a cab and a can"};
    char want[ROOM] = "", got[ROOM];
    for (size_t first = 0; first < 4; first++) {
        struct learnt l = {.data = NULL};
        for (size_t i = 0; i < 4; i++) {
            count(&l.words, VOCAB_BPE, texts[(first + i) % 4]);
        }
        learn(&l, (struct vocab_rules){VOCAB_BPE, 60, 100, 1});
        list_pieces(&l.pieces, first == 0 ? want : got);
        EXPECT_TRUE(l.pieces.count > 20);
        EXPECT_STR_EQ(want, first == 0 ? want : got);
        learnt_free(&l);
    }
}

C_TEST(merges, rare_characters_are_left_out) {
    struct learnt l;
    char got[ROOM];
    /* x occurs once; of a (5), b (2) and c (2) the two most frequent are kept: b is before c. */
    learn_text(&l, (struct vocab_rules){VOCAB_WORDPIECE, 99, 2, 2}, "ab ab ax ac ac");
    EXPECT_STR_EQ("a,b,##a,##b|ab", list_pieces(&l.pieces, got));
    EXPECT_INT_EQ(3, l.pieces.unknown);
    EXPECT_INT_EQ(5, l.pieces.tokens);
    learnt_free(&l);
    /* In BPE a character that is no piece is its bytes, and pairs are found on both sides. */
    static const char bytes[] = "ab\xc3\xa9"
                                "ba ab\xc3\xa9"
                                "ba";
    learn_text(&l, (struct vocab_rules){VOCAB_BPE, 99, 3, 2}, bytes);
    EXPECT_STR_EQ(" ,a,b| a, ab,ba", list_pieces(&l.pieces, got));
    EXPECT_INT_EQ(2 * (1 + 2 + 1), l.pieces.tokens);
    learnt_free(&l);
}

C_TEST(merges, what_cannot_be_learnt_is_refused) {
    struct vocab_words words = {0};
    struct vocab_pieces pieces;
    struct error error = {0};
    struct vocab_rules rules = {VOCAB_WORDPIECE, 99, 100, 2};
    EXPECT_ERROR(STATUS_BAD_FORMAT, "no character occurs 2 times: there is nothing to learn from",
                 vocab_learn(&pieces, &words, &rules, &error));
    rules.kind = VOCAB_BPE;
    EXPECT_STATUS(STATUS_BAD_FORMAT, vocab_learn(&pieces, &words, &rules, &error));
    count(&words, VOCAB_WORDPIECE, "ab ab");
    rules = (struct vocab_rules){VOCAB_WORDPIECE, 3, 100, 2};
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "2 characters are 4 pieces alone, more than the 3 there is room for",
                 vocab_learn(&pieces, &words, &rules, &error));
    vocab_words_free(&words);
}

/* ---- A simple learner to compare with: it counts everything again for every merge. ---- */

enum { PLAIN_WORDS = 200, PLAIN_TOKENS = 16, PLAIN_PIECES = 400, PLAIN_TEXT = 40 };

struct plain {
    char pieces[PLAIN_PIECES][PLAIN_TEXT];
    size_t piece_count;
    int tokens[PLAIN_WORDS][PLAIN_TOKENS];
    size_t lengths[PLAIN_WORDS];
    const struct vocab_words *words;
};

static int plain_piece(struct plain *p, const char *text) {
    for (size_t i = 0; i < p->piece_count; i++) {
        if (strcmp(p->pieces[i], text) == 0) {
            return (int)i;
        }
    }
    snprintf(p->pieces[p->piece_count], PLAIN_TEXT, "%s", text);
    return (int)p->piece_count++;
}

static uint64_t plain_count(const struct plain *p, int left, int right) {
    uint64_t sum = 0;
    for (size_t w = 0; w < p->words->count; w++) {
        for (size_t i = 0; i + 1 < p->lengths[w]; i++) {
            sum += p->tokens[w][i] == left && p->tokens[w][i + 1] == right
                       ? p->words->words[w].count
                       : 0;
        }
    }
    return sum;
}

/* The best pair's text, into best; 0: there is none. */
static uint64_t plain_best(const struct plain *p, int *left, int *right, char *best) {
    uint64_t most = 0;
    for (size_t w = 0; w < p->words->count; w++) {
        for (size_t i = 0; i + 1 < p->lengths[w]; i++) {
            char text[2 * PLAIN_TEXT] = "";
            int a = p->tokens[w][i], b = p->tokens[w][i + 1];
            uint64_t sum = plain_count(p, a, b);
            snprintf(text, sizeof text, "%s%s", p->pieces[a], p->pieces[b]);
            if (sum > most || (sum == most && strcmp(text, best) < 0)) {
                most = sum;
                *left = a;
                *right = b;
                memcpy(best, text, PLAIN_TEXT);
            }
        }
    }
    return most;
}

static void plain_merge(struct plain *p, int left, int right, int piece) {
    for (size_t w = 0; w < p->words->count; w++) {
        size_t kept = 0;
        for (size_t i = 0; i < p->lengths[w]; i++) {
            bool pair =
                i + 1 < p->lengths[w] && p->tokens[w][i] == left && p->tokens[w][i + 1] == right;
            p->tokens[w][kept++] = pair ? piece : p->tokens[w][i];
            i += pair;
        }
        p->lengths[w] = kept;
    }
}

static void draw_words(struct vocab_words *words) {
    struct rng rng = rng_create(5);
    for (int i = 0; i < 2000 && words->count < PLAIN_WORDS; i++) {
        char word[12];
        size_t length = 2 + (size_t)rng_below(&rng, 7);
        for (size_t j = 0; j < length; j++) {
            word[j] = (char)('a' + rng_below(&rng, 3));
        }
        ASSERT_OK(vocab_words_add(words, word, i % 3 == 0 ? length / 2 + 1 : length));
    }
}

/* Every word as its letters. */
static void plain_spell(struct plain *plain, const struct vocab_words *words) {
    *plain = (struct plain){.words = words};
    for (size_t w = 0; w < words->count; w++) {
        for (size_t i = 0; i < words->words[w].length; i++) {
            char letter[2] = {words->text[words->words[w].start + i], '\0'};
            plain->tokens[w][plain->lengths[w]++] = plain_piece(plain, letter);
        }
    }
}

C_TEST(merges, are_those_of_a_plain_learner) {
    static struct plain plain;
    struct vocab_words words = {0};
    struct vocab_pieces pieces;
    draw_words(&words);
    ASSERT_TRUE(!test_has_failed());
    plain_spell(&plain, &words);
    const struct vocab_rules rules = {VOCAB_BPE, PLAIN_PIECES, 100, 2};
    ASSERT_OK(vocab_learn(&pieces, &words, &rules, NULL));
    EXPECT_INT_EQ(4, pieces.characters); /* " ", a, b, c */
    EXPECT_TRUE(pieces.count > 60);
    for (size_t i = pieces.characters; i < pieces.count; i++) {
        char best[PLAIN_TEXT] = "";
        int left = 0, right = 0;
        EXPECT_TRUE(plain_best(&plain, &left, &right, best) >= 2);
        const struct vocab_piece *p = &pieces.pieces[i];
        if (strlen(best) != p->length || memcmp(best, pieces.text + p->start, p->length) != 0) {
            TEST_FAIL("merge %zu is '%.*s', the plain learner's '%s'", i - pieces.characters,
                      (int)p->length, pieces.text + p->start, best);
            break;
        }
        plain_merge(&plain, left, right, plain_piece(&plain, best));
    }
    char rest[PLAIN_TEXT] = "";
    int left = 0, right = 0;
    EXPECT_TRUE(plain_best(&plain, &left, &right, rest) < 2);
    vocab_pieces_free(&pieces);
    vocab_words_free(&words);
}

/* ---- The files ---- */

C_TEST(write, the_wordpiece_tokenizer_reads_its_file) {
    static const char text[] = "Low, lower: the newest and the widest!";
    struct learnt l;
    size_t id_count;
    struct wordpiece *wordpiece;
    int32_t *ids;
    learn_text(&l, (struct vocab_rules){VOCAB_WORDPIECE, 60, 100, 1}, text);
    ASSERT_TRUE(learnt_write(&l, VOCAB_WORDPIECE));
    EXPECT_TRUE(strncmp(l.data, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n!\n,\n:\na\n", 39) == 0);
    ASSERT_OK(wordpiece_parse(&wordpiece, l.data, l.size, NULL));
    EXPECT_INT_EQ(VOCAB_WORDPIECE_SPECIAL + l.pieces.count, wordpiece_size(wordpiece));
    ASSERT_OK(wordpiece_encode(wordpiece, text, strlen(text), 0, &ids, &id_count, NULL));
    char joined[ROOM] = "";
    for (size_t i = 1; i + 1 < id_count; i++) {
        const char *piece = wordpiece_piece(wordpiece, ids[i]);
        bool inner = strncmp(piece, "##", 2) == 0;
        strcat(joined, inner || i == 1 ? "" : " ");
        strcat(joined, inner ? piece + 2 : piece);
    }
    EXPECT_STR_EQ("low , lower : the newest and the widest !", joined);
    free(ids);
    wordpiece_free(wordpiece);
    learnt_free(&l);
}

static void expect_round_trip(const struct bpe *bpe, const char *text) {
    int32_t *tokens;
    size_t token_count, used = 0, length;
    char out[ROOM];
    ASSERT_OK(bpe_encode(bpe, text, strlen(text), true, false, &tokens, &token_count, NULL));
    for (size_t i = 1; i < token_count; i++) {
        const char *piece = bpe_decode(bpe, tokens[i - 1], tokens[i], &length);
        memcpy(out + used, piece, length);
        used += length;
    }
    out[used] = '\0';
    EXPECT_STR_EQ(text, out);
    free(tokens);
}

C_TEST(write, the_bpe_tokenizer_cuts_words_as_they_were_learnt) {
    static const char text[] =
        "the low lower lowest, the new newer newest: in 1998 don't say  \"newest\"!\n\n the end";
    struct learnt l;
    size_t id_count;
    struct bpe *bpe;
    int32_t *ids;
    learn_text(&l, (struct vocab_rules){VOCAB_BPE, 70, 100, 2}, text);
    EXPECT_TRUE(l.pieces.count > l.pieces.characters + 10);
    ASSERT_TRUE(learnt_write(&l, VOCAB_BPE));
    ASSERT_OK(bpe_parse(&bpe, l.data, l.size, VOCAB_BPE_SPECIAL + l.pieces.count, NULL));
    ASSERT_OK(bpe_encode(bpe, text, strlen(text), false, false, &ids, &id_count, NULL));
    EXPECT_INT_EQ(l.pieces.tokens, id_count);
    free(ids);
    expect_round_trip(bpe, text);
    expect_round_trip(bpe, "nothing of this \xe2\x82\xac was there");
    expect_round_trip(bpe, "");
    bpe_free(bpe);
    learnt_free(&l);
}

/* The longest is "<0x00>"; then <unk>, scored 0. */
static const char BPE_BEGIN[] = "\6\0\0\0"
                                "\0\0\0\0"
                                "\5\0\0\0"
                                "<unk>"
                                "\0\0\0\0"
                                "\5\0\0\0"
                                "\n<s>\n";
/* " a" scored 0, " ab" -1, then " " -2, a -3, b -4. */
static const char BPE_END[] = "\0\0\0\0"
                              "\2\0\0\0"
                              " a"
                              "\0\0\x80\xbf"
                              "\3\0\0\0"
                              " ab"
                              "\0\0\0\xc0"
                              "\1\0\0\0"
                              " "
                              "\0\0\x40\xc0"
                              "\1\0\0\0"
                              "a"
                              "\0\0\x80\xc0"
                              "\1\0\0\0"
                              "b";

C_TEST(write, bpe_files_are_laid_out_as_llama2s) {
    struct learnt l;
    learn_text(&l, (struct vocab_rules){VOCAB_BPE, 5, 100, 2}, "ab ab");
    ASSERT_TRUE(learnt_write(&l, VOCAB_BPE));
    bool begins = memcmp(BPE_BEGIN, l.data, sizeof BPE_BEGIN - 1) == 0;
    bool ends = memcmp(BPE_END, l.data + l.size - (sizeof BPE_END - 1), sizeof BPE_END - 1) == 0;
    EXPECT_TRUE(begins);
    EXPECT_TRUE(ends);
    learnt_free(&l);
}

/* ---- Texts ---- */

static const char *write_text(const char *name, const char *text, char *path, size_t size) {
    EXPECT_OK(file_write(test_temporary_path(name, path, size), text, strlen(text), NULL));
    return path;
}

C_TEST(sources, several_files_are_read_in_any_order) {
    char a[1024], b[1024], data[2100], want[ROOM], got[ROOM];
    write_text("a.txt", "one two\n\nthree\nfour\n", a, sizeof a);
    write_text("b.txt", "two\nthree", b, sizeof b);
    for (int order = 0; order < 2; order++) {
        struct learnt l = {.data = NULL};
        size_t texts;
        snprintf(data, sizeof data, "%s,%s", order == 0 ? a : b, order == 0 ? b : a);
        const struct vocab_sources sources = {.dataset = "text", .data = data, .split = "train"};
        ASSERT_OK(vocab_sources_count(&sources, VOCAB_WORDPIECE, true, &l.words, &texts, NULL));
        EXPECT_INT_EQ(4, texts); /* two paragraphs, two lines */
        EXPECT_INT_EQ(6, l.words.total);
        learn(&l, (struct vocab_rules){VOCAB_WORDPIECE, 60, 100, 1});
        list_pieces(&l.pieces, order == 0 ? want : got);
        learnt_free(&l);
    }
    EXPECT_STR_EQ(want, got);
}

static void expect_refused(const char *dataset, const char *data, const char *split,
                           const char *want) {
    struct vocab_words words = {0};
    struct error error = {0};
    size_t texts;
    const struct vocab_sources sources = {.dataset = dataset, .data = data, .split = split};
    EXPECT_TRUE(vocab_sources_count(&sources, VOCAB_BPE, true, &words, &texts, &error) !=
                STATUS_OK);
    if (strstr(error.message, want) == NULL) {
        TEST_FAIL("want '%s', got '%s'", want, error.message);
    }
    vocab_words_free(&words);
}

C_TEST(sources, what_is_bad_is_named) {
    char path[1024], empty[1024];
    write_text("bad.txt", "good\nba\xff", path, sizeof path);
    write_text("empty.txt", "\n \n", empty, sizeof empty);
    expect_refused("text", path, "train", "line 2");
    expect_refused("text", path, "train", "bad.txt");
    expect_refused("text", empty, "train", "empty.txt");
    expect_refused("text", "/proc/nowhere", "train", "/proc/nowhere: cannot open");
    expect_refused("text", "a,,b", "train", "--data: a part between commas is empty");
    expect_refused("imdb", "a", "train,", "--split: a part between commas is empty");
    expect_refused("imdb", "a,b", "train,test,unsup",
                   "--data has 2 paths, --split 3 names; give the same number of both, or only one "
                   "path or one name");
    expect_refused("imdb", "/proc/nowhere", "sideways", "a split is");
    expect_refused("books", "a", "train", "a data set is 'imdb'");
}

C_TEST(sources, reviews_are_learnt_from) {
    char path[1024];
    struct learnt l = {.data = NULL};
    struct wordpiece *wordpiece;
    size_t texts, id_count;
    int32_t *ids;
    if (!test_data_path("aclImdb_labelled.tar.xz", path, sizeof path)) {
        TEST_SKIP("no reviews: set WARPBOOK_DATA to a folder with aclImdb_labelled.tar.xz");
    }
    const struct vocab_sources sources = {
        .dataset = "imdb", .data = path, .split = "test", .limit = 200};
    ASSERT_OK(vocab_sources_count(&sources, VOCAB_WORDPIECE, true, &l.words, &texts, NULL));
    EXPECT_INT_EQ(200, texts);
    learn(&l, (struct vocab_rules){VOCAB_WORDPIECE, 2000, 1000, 2});
    EXPECT_INT_EQ(2000, l.pieces.count);
    EXPECT_TRUE((double)l.pieces.tokens / (double)l.words.total < 1.5);
    ASSERT_TRUE(learnt_write(&l, VOCAB_WORDPIECE));
    ASSERT_OK(wordpiece_parse(&wordpiece, l.data, l.size, NULL));
    static const char text[] = "This movie was the best film of the year";
    ASSERT_OK(wordpiece_encode(wordpiece, text, sizeof text - 1, 0, &ids, &id_count, NULL));
    EXPECT_INT_EQ(9 + 2, id_count); /* common words are pieces of their own */
    free(ids);
    wordpiece_free(wordpiece);
    learnt_free(&l);
}

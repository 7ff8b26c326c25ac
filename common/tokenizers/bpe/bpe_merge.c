/*
 * The tokens form a linked list over their first positions; a heap holds every
 * pair that can be merged. A merge creates at most two new pairs, so all merges
 * of n tokens take O(n log n); searching for the best pair again after each
 * merge would take O(n^2). Pairs whose tokens have changed stay in the heap and
 * are dropped when they are popped.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"

#define NONE SIZE_MAX

/* llama2.c starts its search for the best pair here: a pair must score more. */
static const float LEAST_SCORE = -1e10f;

struct node {
    size_t previous, next; /* NONE at the ends */
    int32_t token;         /* -1 once merged into the node before */
};

/* A node and the next one, with their tokens at the time when the pair was found. */
struct pair {
    size_t left;
    int32_t left_token, right_token;
    int32_t merged;
    float score;
};

struct merger {
    const struct bpe *bpe;
    struct node *nodes;
    struct pair *heap; /* best pair first */
    size_t pairs;
    char *joined; /* bpe->longest bytes */
};

static bool better(const struct pair *a, const struct pair *b) {
    return a->score != b->score ? a->score > b->score : a->left < b->left;
}

static void heap_push(struct merger *merger, struct pair pair) {
    struct pair *heap = merger->heap;
    size_t hole = merger->pairs++;
    while (hole > 0 && better(&pair, &heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = pair;
}

static struct pair heap_pop(struct merger *merger) {
    struct pair *heap = merger->heap;
    struct pair top = heap[0];
    struct pair last = heap[--merger->pairs];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child + 1 < merger->pairs && better(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (child >= merger->pairs || !better(&heap[child], &last)) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return top;
}

/* Without rules any two tokens merge whose joined text is a piece, by the score of that piece. */
static bool find_by_text(struct merger *merger, struct pair *pair) {
    const struct bpe *bpe = merger->bpe;
    const struct bpe_piece *a = &bpe->pieces[pair->left_token];
    const struct bpe_piece *b = &bpe->pieces[pair->right_token];
    size_t length = (size_t)a->length + b->length;
    if (length > bpe->longest) {
        return false;
    }
    memcpy(merger->joined, a->text, a->length);
    memcpy(merger->joined + a->length, b->text, b->length);
    pair->merged = bpe_find(bpe, merger->joined, length);
    if (pair->merged < 0) {
        return false;
    }
    pair->score = bpe->pieces[pair->merged].score;
    return pair->score > LEAST_SCORE;
}

static bool find_by_rule(const struct bpe *bpe, struct pair *pair) {
    const struct bpe_piece *right = &bpe->pieces[pair->right_token];
    if (bpe->split_words && strncmp(right->text, bpe->blank, strlen(bpe->blank)) == 0) {
        return false;
    }
    const struct bpe_rule *rule = bpe_rules_find(bpe, pair->left_token, pair->right_token);
    if (rule == NULL) {
        return false;
    }
    pair->merged = rule->merged;
    pair->score = -(float)rule->rank;
    return true;
}

/* Adds the pair that starts at node `left`, if there is one and the vocabulary merges it. */
static void add_pair(struct merger *merger, size_t left) {
    if (left == NONE || merger->nodes[left].next == NONE) {
        return;
    }
    struct pair pair = {.left = left,
                        .left_token = merger->nodes[left].token,
                        .right_token = merger->nodes[merger->nodes[left].next].token};
    bool found =
        merger->bpe->rules != NULL ? find_by_rule(merger->bpe, &pair) : find_by_text(merger, &pair);
    if (found) {
        heap_push(merger, pair);
    }
}

static bool is_current(const struct merger *merger, const struct pair *pair) {
    const struct node *node = &merger->nodes[pair->left];
    return node->token == pair->left_token && node->next != NONE &&
           merger->nodes[node->next].token == pair->right_token;
}

static void merge_pair(struct merger *merger, const struct pair *pair) {
    struct node *left = &merger->nodes[pair->left];
    struct node *right = &merger->nodes[left->next];
    left->token = pair->merged;
    left->next = right->next;
    right->token = -1;
    if (right->next != NONE) {
        merger->nodes[right->next].previous = pair->left;
    }
    add_pair(merger, left->previous);
    add_pair(merger, pair->left);
}

static void merge_all(struct merger *merger, int32_t *tokens, size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        size_t next = i + 1 < *count ? i + 1 : NONE;
        merger->nodes[i] = (struct node){i > 0 ? i - 1 : NONE, next, tokens[i]};
    }
    for (size_t i = 0; i + 1 < *count; i++) {
        add_pair(merger, i);
    }
    while (merger->pairs > 0) {
        struct pair best = heap_pop(merger);
        if (is_current(merger, &best)) {
            merge_pair(merger, &best);
        }
    }
    *count = 0;
    for (size_t i = 0; i != NONE; i = merger->nodes[i].next) {
        tokens[(*count)++] = merger->nodes[i].token;
    }
}

enum status bpe_merge(const struct bpe *bpe, int32_t *tokens, size_t *count) {
    if (*count < 2) {
        return STATUS_OK;
    }
    size_t most_pairs, pair_bytes, node_bytes;
    if (!checked_multiply(*count, 3, &most_pairs) ||
        !checked_multiply(most_pairs, sizeof(struct pair), &pair_bytes) ||
        !checked_multiply(*count, sizeof(struct node), &node_bytes)) {
        return STATUS_OVERFLOW;
    }
    struct merger merger = {.bpe = bpe,
                            .nodes = malloc(node_bytes),
                            .heap = malloc(pair_bytes),
                            .joined = malloc(bpe->longest + 1)};
    enum status status = STATUS_OUT_OF_MEMORY;
    if (merger.nodes != NULL && merger.heap != NULL && merger.joined != NULL) {
        merge_all(&merger, tokens, count);
        status = STATUS_OK;
    }
    free(merger.nodes);
    free(merger.heap);
    free(merger.joined);
    return status;
}

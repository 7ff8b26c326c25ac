/*
 * The order in which blocks run when a warp has split up.
 *
 * The lanes at the block of the lowest rank run first, so the others wait at the
 * point of reconvergence. That works when ranks follow the control flow (reverse
 * postorder) and the blocks of a loop rank before those after the loop. Reverse
 * postorder alone does not guarantee the second; so blocks are ordered by
 * strongly connected components: a component (a loop) takes consecutive ranks,
 * and its blocks are ordered in the same way without the edges back to its head.
 */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/decode/decode_internal.h"

struct graph {
    struct simt_blocks blocks;
    uint32_t *order; /* rank of a block */
    uint32_t next_rank;

    /* Scratch of Tarjan's algorithm, by block. */
    uint32_t *member; /* which subproblem a block belongs to now */
    uint32_t *index, *low, *edge;
    bool *on_stack;
    uint32_t *stack, *path;
    uint32_t next_member;
};

/* One run over some of the blocks: those whose member is `member`, without edges to `head`. */
struct component_run {
    uint32_t member, head;
    uint32_t counter, stack_size;
    uint32_t *found; /* blocks, component after component, last component first */
    uint32_t found_count;
    uint32_t *sizes;
    uint32_t size_count;
};

static void close_component(struct graph *g, struct component_run *run, uint32_t block) {
    uint32_t size = 0;
    uint32_t popped;
    do {
        popped = g->stack[--run->stack_size];
        g->on_stack[popped] = false;
        run->found[run->found_count++] = popped;
        size++;
    } while (popped != block);
    run->sizes[run->size_count++] = size;
}

static void open_block(struct graph *g, struct component_run *run, uint32_t block) {
    g->index[block] = g->low[block] = ++run->counter;
    g->edge[block] = g->blocks.edge_start[block];
    g->stack[run->stack_size++] = block;
    g->on_stack[block] = true;
}

/* Tarjan's algorithm from one block, without recursion. */
static void search(struct graph *g, struct component_run *run, uint32_t start) {
    uint32_t depth = 0;
    open_block(g, run, start);
    g->path[depth++] = start;
    while (depth > 0) {
        uint32_t block = g->path[depth - 1];
        if (g->edge[block] < g->blocks.edge_start[block + 1]) {
            uint32_t to = g->blocks.edges[g->edge[block]++];
            if (g->member[to] != run->member || to == run->head) {
                continue;
            }
            if (g->index[to] == 0) {
                open_block(g, run, to);
                g->path[depth++] = to;
            } else if (g->on_stack[to] && g->index[to] < g->low[block]) {
                g->low[block] = g->index[to];
            }
            continue;
        }
        depth--;
        if (g->low[block] == g->index[block]) {
            close_component(g, run, block);
        }
        if (depth > 0 && g->low[block] < g->low[g->path[depth - 1]]) {
            g->low[g->path[depth - 1]] = g->low[block];
        }
    }
}

static uint32_t lowest(const uint32_t *blocks, uint32_t count) {
    uint32_t best = blocks[0];
    for (uint32_t n = 1; n < count; n++) {
        best = blocks[n] < best ? blocks[n] : best;
    }
    return best;
}

enum { NO_HEAD = UINT32_MAX };

/*
 * Ranks the given blocks. A loop's head is its first block in the text, which is
 * where nvcc lets control enter; nesting depth bounds the recursion.
 */
static enum status rank_blocks(struct graph *g, const uint32_t *blocks, uint32_t count,
                               uint32_t head) {
    uint32_t *memory = calloc(2 * (size_t)count, sizeof *memory);
    if (memory == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct component_run run = {
        .member = ++g->next_member, .head = head, .found = memory, .sizes = memory + count};
    for (uint32_t n = 0; n < count; n++) {
        g->member[blocks[n]] = run.member;
        g->index[blocks[n]] = 0;
    }
    if (head != NO_HEAD) {
        search(g, &run, head);
    }
    for (uint32_t n = 0; n < count; n++) {
        if (g->index[blocks[n]] == 0) {
            search(g, &run, blocks[n]);
        }
    }
    enum status status = STATUS_OK;
    uint32_t end = run.found_count;
    for (uint32_t c = run.size_count; c-- > 0 && status == STATUS_OK;) {
        uint32_t *component = run.found + end - run.sizes[c];
        end -= run.sizes[c];
        uint32_t top = lowest(component, run.sizes[c]);
        if (run.sizes[c] == 1) {
            g->order[top] = g->next_rank++;
        } else {
            status = rank_blocks(g, component, run.sizes[c], top);
        }
    }
    free(memory);
    return status;
}

static enum status alloc_graph(struct graph *g, size_t count) {
    uint32_t **const arrays[] = {&g->order, &g->member, &g->index, &g->low,
                                 &g->edge,  &g->stack,  &g->path};
    for (size_t n = 0; n < sizeof arrays / sizeof *arrays; n++) {
        *arrays[n] = calloc(count, sizeof **arrays[n]);
        if (*arrays[n] == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    g->on_stack = calloc(count, sizeof *g->on_stack);
    return g->on_stack != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_graph(struct graph *g) {
    simt_blocks_free(&g->blocks);
    free(g->order);
    free(g->member);
    free(g->index);
    free(g->low);
    free(g->edge);
    free(g->stack);
    free(g->path);
    free(g->on_stack);
}

static enum status rank_all(struct graph *g) {
    uint32_t *all = calloc(g->blocks.count, sizeof *all);
    if (all == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t b = 0; b < g->blocks.count; b++) {
        all[b] = b;
    }
    enum status status = rank_blocks(g, all, (uint32_t)g->blocks.count, NO_HEAD);
    free(all);
    return status;
}

static enum status order_blocks(struct graph *g, struct simt_code *code) {
    TRY(simt_blocks_find(&g->blocks, code));
    TRY(alloc_graph(g, g->blocks.count));
    TRY(rank_all(g));
    for (size_t n = 0; n < code->count; n++) {
        code->rank[n] = g->order[g->blocks.of[n]];
    }
    return STATUS_OK;
}

enum status simt_order_blocks(struct simt_code *code) {
    struct graph g = {0};
    enum status status = order_blocks(&g, code);
    free_graph(&g);
    return status;
}

/*
 * The order in which blocks run when a warp has split up.
 *
 * The lanes at the block of the lowest rank go first, so the others wait where
 * the ways meet. That works when ranks follow the flow (reverse postorder) and
 * when a loop's blocks come before anything behind the loop. Reverse postorder
 * alone does not promise the second; so blocks are ordered by strongly connected
 * components: a component (a loop) takes consecutive ranks, and inside of it
 * the same is done again without the edges back to its head.
 */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/code.h"

struct graph {
    const struct simt_code *code;
    size_t blocks;
    uint32_t *first;      /* (blocks + 1): instructions of block b are first[b] .. first[b+1]-1 */
    uint32_t *edge_start; /* (blocks + 1) */
    uint32_t *edges;      /* successors */
    uint32_t *order;      /* rank of a block */
    uint32_t next_rank;

    /* Scratch of Tarjan's algorithm, by block. */
    uint32_t *member; /* which subproblem a block belongs to now */
    uint32_t *index, *low, *edge;
    bool *on_stack;
    uint32_t *stack, *path;
    uint32_t next_member;
};

static const struct simt_instruction *last_of(const struct graph *g, size_t block) {
    return &g->code->instructions[g->first[block + 1] - 1];
}

static bool falls_through(const struct simt_instruction *i) {
    bool leaves = i->flow == SIMT_FLOW_BRANCH || i->flow == SIMT_FLOW_BRANCH_TABLE ||
                  i->flow == SIMT_FLOW_RETURN || i->flow == SIMT_FLOW_EXIT ||
                  i->flow == SIMT_FLOW_TRAP;
    return !leaves || i->guard >= 0;
}

static bool ends_block(const struct simt_instruction *i) {
    return i->flow == SIMT_FLOW_BRANCH || i->flow == SIMT_FLOW_BRANCH_TABLE ||
           i->flow == SIMT_FLOW_RETURN || i->flow == SIMT_FLOW_EXIT || i->flow == SIMT_FLOW_TRAP;
}

static void mark_leaders(const struct simt_code *code) {
    code->leader[0] = true;
    for (size_t n = 0; n < code->count; n++) {
        const struct simt_instruction *i = &code->instructions[n];
        if (i->flow == SIMT_FLOW_BRANCH) {
            code->leader[i->immediate] = true;
        }
        for (size_t t = 0; i->flow == SIMT_FLOW_BRANCH_TABLE && t < i->source->target_count; t++) {
            code->leader[i->source->target_indices[t]] = true;
        }
        if (ends_block(i) && n + 1 < code->count) {
            code->leader[n + 1] = true;
        }
    }
}

static size_t successor_count(const struct graph *g, size_t block) {
    const struct simt_instruction *i = last_of(g, block);
    size_t count = falls_through(i) ? 1 : 0;
    count += i->flow == SIMT_FLOW_BRANCH ? 1 : 0;
    return count + (i->flow == SIMT_FLOW_BRANCH_TABLE ? i->source->target_count : 0);
}

/* block_of (instructions): number of the block. */
static void fill_edges(struct graph *g, const uint32_t *block_of) {
    size_t n = 0;
    for (size_t b = 0; b < g->blocks; b++) {
        const struct simt_instruction *i = last_of(g, b);
        g->edge_start[b] = (uint32_t)n;
        if (i->flow == SIMT_FLOW_BRANCH) {
            g->edges[n++] = block_of[i->immediate];
        }
        for (size_t t = 0; i->flow == SIMT_FLOW_BRANCH_TABLE && t < i->source->target_count; t++) {
            g->edges[n++] = block_of[i->source->target_indices[t]];
        }
        if (falls_through(i) && b + 1 < g->blocks) {
            g->edges[n++] = (uint32_t)b + 1;
        }
    }
    g->edge_start[g->blocks] = (uint32_t)n;
}

static enum status build_graph(struct graph *g, uint32_t *block_of) {
    const struct simt_code *code = g->code;
    for (size_t n = 0; n < code->count; n++) {
        if (code->leader[n]) {
            g->first[g->blocks++] = (uint32_t)n;
        }
        block_of[n] = (uint32_t)g->blocks - 1;
    }
    g->first[g->blocks] = (uint32_t)code->count;
    size_t edges = 0;
    for (size_t b = 0; b < g->blocks; b++) {
        edges += successor_count(g, b);
    }
    g->edges = calloc(edges + 1, sizeof *g->edges);
    if (g->edges == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    fill_edges(g, block_of);
    return STATUS_OK;
}

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
    g->edge[block] = g->edge_start[block];
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
        if (g->edge[block] < g->edge_start[block + 1]) {
            uint32_t to = g->edges[g->edge[block]++];
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
    uint32_t **const arrays[] = {&g->first, &g->edge_start, &g->order, &g->member, &g->index,
                                 &g->low,   &g->edge,       &g->stack, &g->path};
    for (size_t n = 0; n < sizeof arrays / sizeof *arrays; n++) {
        *arrays[n] = calloc(count + 2, sizeof **arrays[n]);
        if (*arrays[n] == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    g->on_stack = calloc(count + 2, sizeof *g->on_stack);
    return g->on_stack != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_graph(struct graph *g) {
    free(g->first);
    free(g->edge_start);
    free(g->edges);
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
    uint32_t *all = calloc(g->blocks, sizeof *all);
    if (all == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t b = 0; b < g->blocks; b++) {
        all[b] = b;
    }
    enum status status = rank_blocks(g, all, (uint32_t)g->blocks, NO_HEAD);
    free(all);
    return status;
}

enum status simt_order_blocks(struct simt_code *code) {
    struct graph g = {.code = code};
    uint32_t *block_of = calloc(code->count, sizeof *block_of);
    enum status status = block_of != NULL ? alloc_graph(&g, code->count) : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        mark_leaders(code);
        status = build_graph(&g, block_of);
    }
    if (status == STATUS_OK) {
        status = rank_all(&g);
    }
    for (size_t n = 0; n < code->count && status == STATUS_OK; n++) {
        code->rank[n] = g.order[block_of[n]];
    }
    free_graph(&g);
    free(block_of);
    return status;
}

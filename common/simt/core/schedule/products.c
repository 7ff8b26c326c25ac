/*
 * Registers that wgmma uses, of a warp that has executed wgmma.fence.
 *
 * wgmma runs beside the warp: until wgmma.wait_group says that its group is over, nobody may use
 * the sums, but wgmma itself; and what other instructions wrote into its registers is only there
 * for it behind a wgmma.fence. simt computes at once, so the registers are followed here.
 *
 * A mov is not a use. Compilers copy a register that an asm statement changes, before it and
 * behind it, and leave it to ptxas to drop the copies; so a copy is in the state of what was
 * copied.
 */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/schedule/warp.h"

/* Of one PTX register. */
struct product {
    uint32_t group;                       /* of wgmma that writes it; 0: none */
    uint32_t written;                     /* fences before another instruction wrote it, + 1 */
    const struct simt_instruction *wgmma; /* that one */
    const struct simt_instruction *writer;
};

struct simt_products {
    const struct simt_code *code;
    struct product *registers; /* (code->function->register_count) */
    uint32_t fences;
    uint32_t committed, over; /* groups */
};

void simt_products_free(struct simt_products *products) {
    if (products != NULL) {
        free(products->registers);
        free(products);
    }
}

/* Of the function that executes wgmma; NULL: memory is short, nothing is followed. */
static struct simt_products *products_of(struct simt_warp_run *w, const struct simt_code *code) {
    struct simt_products *p = w->products;
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        w->products = p;
    }
    if (p != NULL && p->code != code) {
        free(p->registers);
        p->registers = calloc(code->function->register_count + 1, sizeof *p->registers);
        p->code = p->registers != NULL ? code : NULL;
    }
    return p != NULL && p->code == code ? p : NULL;
}

static bool is_in_flight(const struct simt_products *p, const struct product *r) {
    return r->group > p->over;
}

/* The registers that an instruction reads and writes, without its guard. */
struct lists {
    const uint32_t *reads, *writes;
    uint32_t read_count, write_count;
};

static struct lists lists_of(const struct simt_code *code, const struct simt_instruction *i,
                             uint32_t pc) {
    const uint32_t *start = &code->uses.start[2 * (size_t)pc];
    struct lists l = {.reads = &code->uses.list[start[0]],
                      .writes = &code->uses.list[start[1]],
                      .read_count = start[1] - start[0],
                      .write_count = start[2] - start[1]};
    if (i->guard >= 0) {
        l.read_count -= 1 + l.write_count;
    }
    return l;
}

static bool fail_use(struct simt_warp_run *w, const struct simt_instruction *i, uint32_t active,
                     const struct product *r) {
    char line[320];
    const struct simt_run *run = w->warp.block->run;
    simt_fail(&w->warp, i, (uint32_t)__builtin_ctz(active), SIMT_FAULT_PRODUCT, 0,
              "uses a sum of the wgmma%s, which runs until its warp has waited for it "
              "(wgmma.commit_group, wgmma.wait_group)",
              simt_place_text(run, r->wgmma, line, sizeof line));
    simt_place_find(run, r->wgmma, &w->warp.block->fault.other);
    return false;
}

static bool fail_fence(struct simt_warp_run *w, const struct simt_instruction *i, uint32_t active,
                       const struct product *r) {
    char line[320];
    const struct simt_run *run = w->warp.block->run;
    simt_fail(&w->warp, i, (uint32_t)__builtin_ctz(active), SIMT_FAULT_PRODUCT, 0,
              "executes a wgmma with a register that was written%s, with no wgmma.fence in between",
              simt_place_text(run, r->writer, line, sizeof line));
    simt_place_find(run, r->writer, &w->warp.block->fault.other);
    return false;
}

/* wgmma.mma_async: sums of wgmma in flight may be its own. */
static bool multiply(struct simt_warp_run *w, struct simt_products *p, const struct lists *l,
                     const struct simt_instruction *i, uint32_t active) {
    const struct ptx_operand *a = &i->source->operands[1];
    for (size_t n = 0; a->kind == PTX_OPERAND_VECTOR && n < a->element_count; n++) {
        const struct product *r = &p->registers[a->elements[n].index];
        if (is_in_flight(p, r)) {
            return fail_use(w, i, active, r);
        }
        if (r->written > p->fences) {
            return fail_fence(w, i, active, r);
        }
    }
    for (uint32_t n = 0; n < l->write_count; n++) {
        const struct product *r = &p->registers[l->writes[n]];
        if (r->written > p->fences) {
            return fail_fence(w, i, active, r);
        }
        p->registers[l->writes[n]] = (struct product){.group = p->committed + 1, .wgmma = i};
    }
    return true;
}

static bool run_wgmma(struct simt_warp_run *w, struct simt_products *p, const struct lists *l,
                      const struct simt_instruction *i, uint32_t active) {
    const struct ptx_instruction *source = i->source;
    if (ptx_has_modifier(source, "fence")) {
        p->fences++;
    } else if (ptx_has_modifier(source, "commit_group")) {
        p->committed++;
    } else if (ptx_has_modifier(source, "wait_group")) {
        uint32_t pending = (uint32_t)source->operands[0].bits;
        uint32_t over = p->committed > pending ? p->committed - pending : 0;
        p->over = over > p->over ? over : p->over;
    } else {
        return multiply(w, p, l, i, active);
    }
    return true;
}

/* A copy. */
static void move(struct simt_products *p, const struct lists *l) {
    struct product state = {0};
    for (uint32_t n = 0; n < l->read_count; n++) {
        const struct product *r = &p->registers[l->reads[n]];
        if (is_in_flight(p, r) || (r->written > state.written && !is_in_flight(p, &state))) {
            state = *r;
        }
    }
    for (uint32_t n = 0; n < l->write_count; n++) {
        p->registers[l->writes[n]] = state;
    }
}

bool simt_products_step(struct simt_warp_run *w, const struct simt_fragment *f, uint32_t active) {
    const struct simt_code *code = f->frame->code;
    const struct simt_instruction *i = &code->instructions[f->pc];
    const char *base = i->source->base;
    bool wgmma = base[0] == 'w' && strcmp(base, "wgmma") == 0;
    struct simt_products *p = wgmma || w->products == NULL ? products_of(w, code) : w->products;
    if (p == NULL || p->code != code || active == 0) {
        return true;
    }
    const struct lists l = lists_of(code, i, f->pc);
    if (wgmma) {
        return run_wgmma(w, p, &l, i, active);
    }
    if (base[0] == 'm' && strcmp(base, "mov") == 0) {
        move(p, &l);
        return true;
    }
    for (uint32_t n = 0; n < l.read_count; n++) {
        const struct product *r = &p->registers[l.reads[n]];
        if (is_in_flight(p, r)) {
            return fail_use(w, i, active, r);
        }
    }
    for (uint32_t n = 0; n < l.write_count; n++) {
        p->registers[l.writes[n]] = (struct product){.written = p->fences + 1, .writer = i};
    }
    return true;
}

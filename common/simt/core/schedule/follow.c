/*
 * What is noted of single instructions: of few warps, but for a launch that x-ray records. In a
 * file of its own, so that the interpreter's loop keeps its registers.
 */
#include "common/simt/core/schedule/timeline.h"
#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/pipeline.h"
#include "common/simt/memory/xray.h"

/* A loop that only asks whether something is over is a wait, which ends when that is. */
void simt_warp_clock(struct simt_warp_run *w, const struct simt_code *code, uint32_t pc) {
    struct simt_pipeline *pipeline = w->warp.block->pipeline;
    uint32_t warp = w->warp.index;
    uint32_t flow = code->instructions[pc].flow;
    bool asks = flow == SIMT_FLOW_POLL || flow == SIMT_FLOW_WARPGROUP;
    if (w->warp.reached_peer) {
        simt_timeline_reach_peer(w->clock);
        w->warp.reached_peer = false;
    }
    if (pipeline_is_polling(pipeline, warp, asks) || asks) {
        return;
    }
    uint64_t until = simt_pipeline_until(pipeline, warp);
    if (w->warp.load_cycles > 0) {
        simt_timeline_load(w->clock, until, w->warp.load_cycles);
        w->warp.load_cycles = 0;
    }
    simt_timeline_hold(w->clock, until);
    simt_timeline_step(w->clock, code, pc);
    simt_pipeline_set(pipeline, warp, simt_timeline_now(w->clock));
}

static void note(struct simt_warp_run *w, const struct simt_code *code, uint32_t pc,
                 uint32_t active) {
    const struct simt_xray *xray = w->warp.block->xray;
    const struct simt_vain *v = &w->vain;
    if (v->idle && code == v->code && pc >= v->begin && pc <= v->end) {
        return; /* polls in vain */
    }
    if (xray != NULL) {
        struct simt_xray_instruction *record = &xray->instructions[code->first + pc];
        record->executed++;
        record->lanes += (uint64_t)__builtin_popcount(active);
    }
    if (w->timeline != NULL && w->timeline != w->clock) {
        if (w->warp.reached_peer) {
            simt_timeline_reach_peer(w->timeline);
        }
        simt_timeline_step(w->timeline, code, pc);
    }
    if (w->clock != NULL) {
        simt_warp_clock(w, code, pc);
    }
    w->warp.reached_peer = false;
}

bool simt_warp_attend(struct simt_warp_run *w, const struct simt_fragment *f, uint32_t active) {
    if ((w->warp.attention & SIMT_ATTENTION_FOLLOWED) != 0 || w->clock != NULL) {
        note(w, f->frame->code, f->pc, active);
    }
    if ((w->warp.attention & SIMT_ATTENTION_PRODUCTS) != 0 && !simt_products_step(w, f, active)) {
        return false;
    }
    return (w->warp.attention & SIMT_ATTENTION_UNDEFINED) == 0 || simt_undefined_step(w, f, active);
}

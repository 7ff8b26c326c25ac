/*
 * ldmatrix, stmatrix, movmatrix: matrices of 8x8 16-bit elements.
 *
 * Lanes 8j ... 8j+7 hold the addresses of the rows of matrix j. Lane l gets (or
 * gives) elements 2*(l % 4) and the next of row l / 4; with .trans of column
 * l / 4 instead.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"

/* detail: 0 taken, 1 matrices, 2 the flags below, above them the space. */
enum { MATRICES = 1, FLAGS };
enum { FLAG_NARROW = 1, FLAG_TRANSPOSED = 2, SPACE_SHIFT = 8, SIDE = 8, ROW_BYTES = 16 };

typedef uint16_t matrix[SIDE][SIDE];

static void give(const matrix m, bool transposed, union simt_row *row) {
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t line = lane / 4, at = 2 * (lane % 4);
        uint32_t low = transposed ? m[at][line] : m[line][at];
        uint32_t high = transposed ? m[at + 1][line] : m[line][at + 1];
        row->u32[lane] = low | high << 16;
    }
}

static void take(matrix m, bool transposed, const union simt_row *row) {
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t line = lane / 4, at = 2 * (lane % 4);
        uint16_t low = (uint16_t)row->u32[lane], high = (uint16_t)(row->u32[lane] >> 16);
        *(transposed ? &m[at][line] : &m[line][at]) = low;
        *(transposed ? &m[at + 1][line] : &m[line][at + 1]) = high;
    }
}

/* Finds the rows of all matrices. */
static bool resolve(struct simt_warp *warp, const struct simt_instruction *i,
                    enum simt_access_kind kind, unsigned char *host[SIMT_LANES]) {
    struct simt_access access = {.space = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT),
                                 .kind = kind,
                                 .bytes = ROW_BYTES,
                                 .counted = true};
    uint32_t rows = SIDE * i->detail[MATRICES];
    uint32_t lanes = rows == SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << rows) - 1;
    simt_lane_addresses(warp, i->src[0], (i->detail[FLAGS] & FLAG_NARROW) != 0, i->immediate,
                        access.addresses);
    return simt_lane_require_all(warp, i) && simt_lane_resolve(warp, i, &access, lanes, host);
}

static void run_load(struct simt_warp *warp, const struct simt_instruction *i) {
    unsigned char *host[SIMT_LANES];
    matrix matrices[4] = {{{0}}};
    if (!resolve(warp, i, SIMT_READ, host)) {
        return;
    }
    for (uint32_t n = 0; n < SIDE * i->detail[MATRICES]; n++) {
        if (host[n] != NULL) {
            memcpy(matrices[n / SIDE][n % SIDE], host[n], ROW_BYTES);
        }
    }
    for (uint32_t n = 0; n < i->detail[MATRICES]; n++) {
        give(matrices[n], (i->detail[FLAGS] & FLAG_TRANSPOSED) != 0, simt_row(warp, i->dst[n]));
    }
}

static void run_store(struct simt_warp *warp, const struct simt_instruction *i) {
    unsigned char *host[SIMT_LANES];
    matrix matrices[4];
    if (!resolve(warp, i, SIMT_WRITE, host)) {
        return;
    }
    for (uint32_t n = 0; n < i->detail[MATRICES]; n++) {
        take(matrices[n], (i->detail[FLAGS] & FLAG_TRANSPOSED) != 0, simt_row(warp, i->src[n + 1]));
    }
    for (uint32_t n = 0; n < SIDE * i->detail[MATRICES]; n++) {
        if (host[n] != NULL) {
            memcpy(host[n], matrices[n / SIDE][n % SIDE], ROW_BYTES);
        }
    }
}

static void run_move(struct simt_warp *warp, const struct simt_instruction *i) {
    matrix m;
    if (simt_lane_require_all(warp, i)) {
        take(m, false, simt_row(warp, i->src[0]));
        give(m, true, simt_row(warp, i->dst[0]));
    }
}

static uint32_t matrix_count(const struct ptx_instruction *in) {
    return ptx_has_modifier(in, "x4") ? 4 : ptx_has_modifier(in, "x2") ? 2 : 1;
}

bool simt_decode_matrix(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool load = strcmp(in->base, "ldmatrix") == 0;
    bool store = strcmp(in->base, "stmatrix") == 0;
    bool move = strcmp(in->base, "movmatrix") == 0;
    if ((!load && !store && !move) || !ptx_has_modifier(in, "m8n8") ||
        !ptx_has_modifier(in, "b16") || in->operand_count != 2) {
        return false;
    }
    uint32_t matrices = matrix_count(in);
    uint32_t registers = load ? out->dst_count : out->src_count - 1u;
    if (!move && registers != matrices) {
        return false;
    }
    simt_lane_synchronise(out);
    out->detail[MATRICES] = matrices;
    out->detail[FLAGS] = (uint32_t)simt_lane_space(in) << SPACE_SHIFT;
    out->detail[FLAGS] |=
        simt_lane_address_is_narrow(decoding, load ? 1 : 0) ? (uint32_t)FLAG_NARROW : 0;
    out->detail[FLAGS] |= ptx_has_modifier(in, "trans") ? (uint32_t)FLAG_TRANSPOSED : 0;
    out->run = load ? run_load : store ? run_store : run_move;
    return true;
}

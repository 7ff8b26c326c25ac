/*
 * ld and st: moves between rows and the places of a resolved request.
 */
#include "common/simt/memory/access/decode_memory.h"
#include "common/simt/memory/access/late.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { FOUR = 4, EIGHT = 8 }; /* lanes of SIMT_SHAPE_EIGHTS that lie side by side */

/* Loads stay inside the checked range: inactive lanes read the first active lane's address. */
#define DEFINE_LOAD(name, type)                     \
    SIMT_HOT type name(const unsigned char *from) { \
        type value;                                 \
        memcpy(&value, from, sizeof value);         \
        return value;                               \
    }
DEFINE_LOAD(load_u8, uint8_t)
DEFINE_LOAD(load_u16, uint16_t)
DEFINE_LOAD(load_u32, uint32_t)
DEFINE_LOAD(load_u64, uint64_t)
#undef DEFINE_LOAD

/* One element of all lanes into registers of 4 bytes. */
SIMT_HOT void gather32(const struct simt_request *request, const unsigned char *from,
                       uint32_t row[SIMT_LANES]) {
    if (request->mask == UINT32_MAX) {
        if (request->pattern->shape == SIMT_SHAPE_SAME && request->space != PTX_LOCAL) {
            uint32_t value = load_u32(from);
            for (size_t n = 0; n < SIMT_LANES; n++) {
                row[n] = value;
            }
            return;
        }
        if (request->pattern->shape == SIMT_SHAPE_EIGHTS && request->space != PTX_LOCAL &&
            request->bytes == 4) {
            for (size_t n = 0; n < SIMT_LANES; n += EIGHT) {
                memcpy(row + n, from + request->relative[n], EIGHT * sizeof *row);
            }
            return;
        }
        for (size_t n = 0; n < SIMT_LANES; n++) {
            row[n] = load_u32(from + request->relative[n]);
        }
        return;
    }
    if (request->pattern->shape == SIMT_SHAPE_SAME && request->space != PTX_LOCAL) {
        uint32_t value = load_u32(from);
        for (size_t n = 0; n < SIMT_LANES; n++) {
            uint32_t lane = request->lanes[n];
            row[n] = (value & lane) | (row[n] & ~lane);
        }
        return;
    }
    uint32_t values[SIMT_LANES];
    for (size_t n = 0; n < SIMT_LANES; n++) {
        values[n] = load_u32(from + request->relative[n]);
    }
    for (size_t n = 0; n < SIMT_LANES; n++) {
        uint32_t lane = request->lanes[n];
        row[n] = (values[n] & lane) | (row[n] & ~lane);
    }
}

/* Four elements of all lanes into registers of 4 bytes: lanes are turned into rows. */
SIMT_HOT void gather_four(const struct simt_warp *warp, const struct simt_instruction *in,
                          const unsigned char *from, const int32_t *relative) {
    uint32_t *row[FOUR];
    for (size_t e = 0; e < FOUR; e++) {
        row[e] = simt_row(warp, in->dst[e])->u32;
    }
#ifdef __AVX2__
    __m256 lanes[FOUR];
    for (size_t n = 0; n < SIMT_LANES; n += EIGHT) {
        for (size_t k = 0; k < FOUR; k++) { /* lanes n + k and n + 4 + k */
            const float *low = (const void *)(from + relative[n + k]);
            const float *high = (const void *)(from + relative[n + FOUR + k]);
            lanes[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)),
                                            _mm_loadu_ps(high), 1);
        }
        __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(lanes[0], lanes[1]));
        __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(lanes[2], lanes[3]));
        __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(lanes[0], lanes[1]));
        __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(lanes[2], lanes[3]));
        _mm256_storeu_pd((void *)(row[0] + n), _mm256_unpacklo_pd(low01, low23));
        _mm256_storeu_pd((void *)(row[1] + n), _mm256_unpackhi_pd(low01, low23));
        _mm256_storeu_pd((void *)(row[2] + n), _mm256_unpacklo_pd(high01, high23));
        _mm256_storeu_pd((void *)(row[3] + n), _mm256_unpackhi_pd(high01, high23));
    }
#else
    for (size_t n = 0; n < SIMT_LANES; n++) {
        for (size_t e = 0; e < FOUR; e++) {
            row[e][n] = load_u32(from + relative[n] + 4 * e);
        }
    }
#endif
}

static void move_load32(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    if (count == 1 && request->pattern->shape == SIMT_SHAPE_CONTIGUOUS &&
        request->space != PTX_LOCAL) {
        memcpy(simt_row(request->warp, in->dst[0])->u32, request->host, 4 * SIMT_LANES);
        return;
    }
    if (count == FOUR && request->mask == UINT32_MAX) {
        gather_four(request->warp, in, request->host, request->relative);
        return;
    }
    for (uint32_t e = 0; e < count; e++) {
        gather32(request, request->host + 4 * e, simt_row(request->warp, in->dst[e])->u32);
    }
}

/* Writes the active lanes of a register of any size. */
static void put_row(const struct simt_request *request, uint32_t offset, uint32_t bytes,
                    const uint64_t values[SIMT_LANES]) {
    union simt_row *row = simt_row(request->warp, offset);
    uint64_t kept = bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * bytes) - 1;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        if (request->lanes[n] == 0) {
            continue;
        }
        if (bytes > 4) {
            row->u64[n] = values[n];
        } else {
            row->u32[n] = (uint32_t)(values[n] & kept);
        }
    }
}

SIMT_HOT uint64_t extend(uint64_t value, uint32_t bytes, bool is_signed) {
    uint32_t shift = 64 - 8 * bytes;
    return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

static uint64_t load_element(const unsigned char *from, uint32_t bytes, bool is_signed) {
    switch (bytes) {
    case 1:
        return extend(load_u8(from), 1, is_signed);
    case 2:
        return extend(load_u16(from), 2, is_signed);
    case 4:
        return extend(load_u32(from), 4, is_signed);
    default:
        return load_u64(from);
    }
}

static void move_load(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    uint32_t element = simt_field(in, SIMT_ELEMENT_SHIFT);
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    bool is_signed = (in->detail[0] & SIMT_SIGNED) != 0;
    uint64_t values[SIMT_LANES];
    for (uint32_t e = 0; e < count; e++) {
        const unsigned char *from = request->host + e * element;
        uint32_t bytes = simt_register_bytes(in, e);
        for (size_t n = 0; n < SIMT_LANES; n++) {
            values[n] = load_element(from + request->relative[n], element, is_signed);
        }
        put_row(request, in->dst[e], bytes, values);
        if (bytes == 16) {
            for (size_t n = 0; n < SIMT_LANES; n++) {
                values[n] = element == 16 ? load_u64(from + request->relative[n] + 8) : 0;
            }
            put_row(request, in->dst[e] + sizeof(union simt_row), 8, values);
        }
    }
}

static void move_store32(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    if (count == 1 && request->pattern->shape == SIMT_SHAPE_CONTIGUOUS &&
        request->space != PTX_LOCAL) {
        memcpy(request->host, simt_row(request->warp, in->src[1])->u32, 4 * SIMT_LANES);
        return;
    }
    if (count == 1 && request->pattern->shape == SIMT_SHAPE_EIGHTS && request->space != PTX_LOCAL) {
        const uint32_t *row = simt_row(request->warp, in->src[1])->u32;
        for (size_t n = 0; n < SIMT_LANES; n += EIGHT) {
            memcpy(request->host + request->relative[n], row + n, EIGHT * sizeof *row);
        }
        return;
    }
    for (uint32_t e = 0; e < count; e++) {
        const uint32_t *row = simt_row(request->warp, in->src[1 + e])->u32;
        unsigned char *to = request->host + 4 * e;
        for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
            uint32_t lane = simt_first_lane(rest);
            memcpy(to + request->relative[lane], &row[lane], 4);
        }
    }
}

SIMT_HOT void store_element(unsigned char *to, uint64_t value, uint32_t bytes) {
    switch (bytes) {
    case 1:
        memcpy(to, &value, 1);
        break;
    case 2:
        memcpy(to, &value, 2);
        break;
    case 4:
        memcpy(to, &value, 4);
        break;
    default:
        memcpy(to, &value, 8);
        break;
    }
}

static void move_store(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    uint32_t element = simt_field(in, SIMT_ELEMENT_SHIFT);
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    for (uint32_t e = 0; e < count; e++) {
        const union simt_row *row = simt_row(request->warp, in->src[1 + e]);
        bool wide = simt_register_bytes(in, e) > 4;
        for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
            uint32_t lane = simt_first_lane(rest);
            unsigned char *to = request->host + request->relative[lane] + e * element;
            store_element(to, wide ? row->u64[lane] : row->u32[lane], element);
            if (element == 16) {
                store_element(to + 8, row[1].u64[lane], 8);
            }
        }
    }
}

/*
 * Quick accesses to shared memory: all lanes of a warp, of 4-byte elements, that repeat a base
 * register. Their pattern says where the first address may lie, so nothing else is to be looked at,
 * and no request is made.
 */

/* @return the pattern and the first address; NULL: not one of these */
SIMT_HOT struct simt_pattern *quick_pattern(const struct simt_warp *warp,
                                            const struct simt_instruction *in, uint32_t *first) {
    const struct simt_base *base = &warp->bases[in->base];
    *first = (uint32_t)base->first + (uint32_t)in->immediate;
    size_t slot = (in->site + SIMT_SHARED_SLOT) % SIMT_PATTERN_SLOTS;
    struct simt_pattern *pattern = &warp->block->cache->patterns[slot];
    bool same = pattern->base_serial == base->serial && pattern->site == in->site;
    bool known = in->repeats_base && warp->mask == UINT32_MAX && base->mask == UINT32_MAX &&
                 pattern->base_mask == UINT32_MAX && same;
    bool aligned = (*first & (simt_field(in, SIMT_BYTES_SHIFT) - 1)) == 0;
    bool inside = *first - pattern->quick_low < pattern->quick_count;
    return SIMT_LIKELY(known && aligned && inside) ? pattern : NULL;
}

SIMT_HOT void quick_count(const struct simt_warp *warp, struct simt_pattern *pattern) {
    pattern->uses[0]++;
    pattern->lanes += SIMT_LANES;
    if (!SIMT_LIKELY(pattern->listed)) {
        simt_pattern_list(warp->block->cache, pattern);
    }
}

SIMT_HOT void quick_load(const struct simt_pattern *pattern, const unsigned char *from,
                         uint32_t row[SIMT_LANES], bool alone) {
    if (pattern->shape == SIMT_SHAPE_SAME) {
        uint32_t value = load_u32(from);
        for (size_t n = 0; n < SIMT_LANES; n++) {
            row[n] = value;
        }
    } else if (alone && pattern->shape == SIMT_SHAPE_CONTIGUOUS) {
        memcpy(row, from, 4 * SIMT_LANES);
    } else if (alone && pattern->shape == SIMT_SHAPE_EIGHTS) {
        for (size_t n = 0; n < SIMT_LANES; n += EIGHT) {
            memcpy(row + n, from + pattern->relative[n], EIGHT * sizeof *row);
        }
    } else {
        for (size_t n = 0; n < SIMT_LANES; n++) {
            row[n] = load_u32(from + pattern->relative[n]);
        }
    }
}

static __attribute__((noinline)) void slow_load32_shared(struct simt_warp *warp,
                                                         const struct simt_instruction *in) {
    simt_request_run(warp, in, PTX_SHARED, SIMT_READ, move_load32);
}

static __attribute__((noinline)) void slow_store32_shared(struct simt_warp *warp,
                                                          const struct simt_instruction *in) {
    simt_request_run(warp, in, PTX_SHARED, SIMT_WRITE, move_store32);
}

static void load32_shared(struct simt_warp *warp, const struct simt_instruction *in) {
    uint32_t first;
    struct simt_pattern *pattern = quick_pattern(warp, in, &first);
    if (pattern == NULL ||
        (warp->block->shadow != NULL &&
         !simt_shadow_reads(warp, pattern, first, simt_field(in, SIMT_BYTES_SHIFT)))) {
        slow_load32_shared(warp, in);
        return;
    }
    quick_count(warp, pattern);
    const unsigned char *from = warp->block->shared + first;
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    if (count == FOUR && pattern->shape != SIMT_SHAPE_SAME) {
        gather_four(warp, in, from, pattern->relative);
        return;
    }
    for (uint32_t e = 0; e < count; e++) {
        quick_load(pattern, from + 4 * e, simt_row(warp, in->dst[e])->u32, count == 1);
    }
}

static void store32_shared(struct simt_warp *warp, const struct simt_instruction *in) {
    uint32_t first;
    struct simt_pattern *pattern = quick_pattern(warp, in, &first);
    if (pattern == NULL || warp->block->shadow != NULL || pattern->shape != SIMT_SHAPE_CONTIGUOUS ||
        simt_field(in, SIMT_COUNT_SHIFT) != 1) {
        slow_store32_shared(warp, in);
        return;
    }
    quick_count(warp, pattern);
    memcpy(warp->block->shared + first, simt_row(warp, in->src[1])->u32, 4 * SIMT_LANES);
}

/* Handlers: one for each space, of 4-byte elements in 4-byte registers and of any others. */
#define DEFINE_ACCESS(name, space, kind, move)                                    \
    static void name(struct simt_warp *warp, const struct simt_instruction *in) { \
        simt_request_run(warp, in, space, kind, move);                            \
    }
DEFINE_ACCESS(load32_generic, PTX_GENERIC, SIMT_READ, move_load32)
DEFINE_ACCESS(load32_global, PTX_GLOBAL, SIMT_READ, move_load32)
DEFINE_ACCESS(load32_local, PTX_LOCAL, SIMT_READ, move_load32)
DEFINE_ACCESS(load32_const, PTX_CONST, SIMT_READ, move_load32)
DEFINE_ACCESS(load32_param, PTX_PARAM, SIMT_READ, move_load32)
DEFINE_ACCESS(load_generic, PTX_GENERIC, SIMT_READ, move_load)
DEFINE_ACCESS(load_global, PTX_GLOBAL, SIMT_READ, move_load)
DEFINE_ACCESS(load_shared, PTX_SHARED, SIMT_READ, move_load)
DEFINE_ACCESS(load_local, PTX_LOCAL, SIMT_READ, move_load)
DEFINE_ACCESS(load_const, PTX_CONST, SIMT_READ, move_load)
DEFINE_ACCESS(load_param, PTX_PARAM, SIMT_READ, move_load)
DEFINE_ACCESS(store32_generic, PTX_GENERIC, SIMT_WRITE, move_store32)
DEFINE_ACCESS(store32_global, PTX_GLOBAL, SIMT_WRITE, move_store32)
DEFINE_ACCESS(store32_local, PTX_LOCAL, SIMT_WRITE, move_store32)
DEFINE_ACCESS(store_generic, PTX_GENERIC, SIMT_WRITE, move_store)
DEFINE_ACCESS(store_global, PTX_GLOBAL, SIMT_WRITE, move_store)
DEFINE_ACCESS(store_shared, PTX_SHARED, SIMT_WRITE, move_store)
DEFINE_ACCESS(store_local, PTX_LOCAL, SIMT_WRITE, move_store)
#undef DEFINE_ACCESS

static simt_handler *const handlers[][PTX_GENERIC + 1][2] = {
    {
        [PTX_GENERIC] = {load_generic, load32_generic},
        [PTX_GLOBAL] = {load_global, load32_global},
        [PTX_SHARED] = {load_shared, load32_shared},
        [PTX_LOCAL] = {load_local, load32_local},
        [PTX_CONST] = {load_const, load32_const},
        [PTX_PARAM] = {load_param, load32_param},
    },
    {
        [PTX_GENERIC] = {store_generic, store32_generic},
        [PTX_GLOBAL] = {store_global, store32_global},
        [PTX_SHARED] = {store_shared, store32_shared},
        [PTX_LOCAL] = {store_local, store32_local},
    },
};

/* The block's reads are over for who sees the store. Between blocks alone: those that wait for each
 * other inside a block have barriers. */
static void publish_or_observe(struct simt_warp *warp, enum ptx_space space, bool store) {
    struct simt_block *block = warp->block;
    bool global = space == PTX_GLOBAL || space == PTX_GENERIC;
    if (!global || block->shadow == NULL || block->shadow->watch == NULL) {
        return;
    }
    if (store) {
        simt_history_publish(block->shadow->watch->blocks, &block->agent);
    } else {
        simt_history_observe(block->shadow->watch->blocks, &block->agent);
    }
}

/* Volatile and the like: ordered, and therefore never part of a race. */
static void run_strong(struct simt_warp *warp, const struct simt_instruction *in) {
    bool store = in->dst_count == 0;
    simt_sync_release(warp, in->detail[0]);
    publish_or_observe(warp, (enum ptx_space)in->detail[2], store);
    simt_late_begin(warp, in);
    handlers[store][in->detail[2]][0](warp, in);
    simt_sync_acquire(warp, in->detail[0]);
    simt_late_end(warp, in, store);
}

simt_handler *simt_load_store_handler(struct simt_instruction *in, enum ptx_space space, bool store,
                                      bool plain32) {
    in->has_base = space != PTX_GENERIC;
    if ((in->detail[0] & SIMT_STRONG) != 0 && handlers[store][space][0] != NULL) {
        in->detail[2] = space;
        return run_strong;
    }
    return handlers[store][space][plain32];
}

void simt_sync_release(struct simt_warp *warp, uint32_t flags) {
    struct simt_block *block = warp->block;
    if (block->shadow == NULL) {
        return;
    }
    if ((flags & (SIMT_RELEASES_BLOCK | SIMT_RELEASES_DEVICE)) != 0) {
        simt_shadow_release(block->shadow, warp->index);
    }
    if ((flags & SIMT_RELEASES_DEVICE) != 0 && block->shadow->watch != NULL) {
        simt_history_release(block->shadow->watch->blocks, &block->agent);
    }
    if ((flags & SIMT_RELEASES_DEVICE) != 0 && block->cluster != NULL) {
        simt_cluster_release(block);
    }
}

void simt_sync_acquire(struct simt_warp *warp, uint32_t flags) {
    struct simt_block *block = warp->block;
    if ((flags & SIMT_ACQUIRES) == 0 || block->shadow == NULL) {
        return;
    }
    simt_shadow_acquire(block->shadow, warp->index);
    if ((flags & SIMT_LOOKS) != 0) {
        block->has_looked = true;
    } else if (block->shadow->watch != NULL) {
        simt_history_acquire(block->shadow->watch->blocks, &block->agent);
    }
    if (block->cluster != NULL) {
        simt_cluster_acquire(block);
    }
}

void simt_sync_met(struct simt_block *block) {
    const struct simt_yield *yield = block->run->yield;
    if (block->has_looked && block->shadow != NULL && yield != NULL) {
        yield->order(yield->context, SIMT_ORDER_ACQUIRES, 0, 0);
    }
    if (block->has_looked && block->shadow != NULL && block->shadow->watch != NULL) {
        simt_history_acquire(block->shadow->watch->blocks, &block->agent);
    }
    block->has_looked = false;
}

uint32_t simt_sync_flags(const struct ptx_instruction *source) {
    static const char *const releasing[] = {"release", "acq_rel", "sc", NULL};
    static const char *const acquiring[] = {"acquire", "acq_rel", "sc", NULL};
    static const char *const looking[] = {"relaxed", "volatile", "mmio", NULL};
    bool fence = strcmp(source->base, "fence") == 0 || strcmp(source->base, "membar") == 0;
    bool atomic = strcmp(source->base, "atom") == 0 || strcmp(source->base, "red") == 0;
    static const char *const system[] = {"sys", "volatile", "mmio", NULL};
    uint32_t flags = ptx_has_any_modifier(source, system) ? SIMT_SYSTEM : 0;
    if (fence || ptx_has_any_modifier(source, acquiring)) {
        flags |= SIMT_ACQUIRES;
    } else if (atomic || ptx_has_any_modifier(source, looking)) {
        flags |= (uint32_t)SIMT_ACQUIRES | (uint32_t)SIMT_LOOKS;
    }
    if (fence || ptx_has_any_modifier(source, releasing)) {
        flags |= ptx_has_modifier(source, "cta") ? SIMT_RELEASES_BLOCK : SIMT_RELEASES_DEVICE;
    }
    return flags;
}

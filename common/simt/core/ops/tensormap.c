/*
 * tensormap.replace: a thread changes a field of a tensor map in memory. tensormap.cp_fenceproxy: a
 * warp copies a tensor map from shared to global memory, where copies find it that come behind a
 * fence.proxy.tensormap of another thread.
 *
 * That fence is not followed: a map that is read without one is not told.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/memory/access/decode_memory.h"
#include "common/simt/tensor_map/tensor_map.h"

enum { CHUNK = 16, PARTS = sizeof(struct tensor_map) / CHUNK, MOST_BOX = 256, MOST_STEP = 8 };

/* detail: 0 taken, 1 enum field, 2 an address is 32 bits wide, 3 space of the map. */
enum { FIELD = 1, FLAGS, SPACE };
enum { FLAG_NARROW_FIRST = 1, FLAG_NARROW_SECOND = 2 };

enum field {
    FIELD_ADDRESS,
    FIELD_RANK,
    FIELD_BOX,
    FIELD_SIZE,
    FIELD_STRIDE,
    FIELD_STEP,
    FIELD_TYPE,
    FIELD_INTERLEAVE,
    FIELD_SWIZZLE,
    FIELD_FILL,
    FIELD_COUNT
};

static const struct {
    const char *name;
    bool by_dimension; /* an operand says which one */
} fields[FIELD_COUNT] = {[FIELD_ADDRESS] = {"global_address", false},
                         [FIELD_RANK] = {"rank", false},
                         [FIELD_BOX] = {"box_dim", true},
                         [FIELD_SIZE] = {"global_dim", true},
                         [FIELD_STRIDE] = {"global_stride", true},
                         [FIELD_STEP] = {"element_stride", true},
                         [FIELD_TYPE] = {"elemtype", false},
                         [FIELD_INTERLEAVE] = {"interleave_layout", false},
                         [FIELD_SWIZZLE] = {"swizzle_mode", false},
                         [FIELD_FILL] = {"fill_mode", false}};

/* Of the PTX manual's numbers of types: bytes, and the number of CUtensorMapDataType. */
static const struct {
    uint8_t bytes, type;
} types[] = {{1, 0}, {2, 1},  {4, 2}, {4, 3}, {8, 4},  {8, 5}, {2, 6},
             {4, 7}, {4, 10}, {8, 8}, {2, 9}, {4, 11}, {4, 12}};
enum { TYPES = sizeof types / sizeof *types };

/* One thread's access to a map. */
static bool move(struct simt_warp *warp, const struct simt_instruction *i, enum ptx_space space,
                 enum simt_access_kind kind, uint32_t lane, uint64_t address,
                 struct tensor_map *map) {
    struct simt_access access = {.space = space, .kind = kind, .bytes = CHUNK};
    unsigned char *host[SIMT_LANES];
    for (size_t n = 0; n < PARTS; n++) {
        unsigned char *part = (unsigned char *)map + n * CHUNK;
        access.addresses[lane] = address + n * CHUNK;
        if (!simt_lane_resolve(warp, i, &access, 1u << lane, host)) {
            return false;
        }
        if (host[lane] != NULL && kind == SIMT_READ) {
            memcpy(part, host[lane], CHUNK);
        } else if (host[lane] != NULL) {
            memcpy(host[lane], part, CHUNK);
        }
    }
    if (map->magic != TENSOR_MAP_MAGIC) {
        simt_fail(warp, i, lane, SIMT_FAULT_TEXTURE, address,
                  "names a tensor map at 0x%llx, but what lies there was not made by "
                  "cuTensorMapEncodeTiled",
                  (unsigned long long)address);
        return false;
    }
    return true;
}

/* @return false: the map cannot have such a value */
static bool set(struct tensor_map *map, enum field field, uint32_t dimension, uint64_t value) {
    uint32_t most = field == FIELD_STRIDE ? TENSOR_DIMENSIONS - 1 : TENSOR_DIMENSIONS;
    if (fields[field].by_dimension && dimension >= most) {
        return false;
    }
    switch (field) {
    case FIELD_ADDRESS:
        map->address = value;
        return value % CHUNK == 0;
    case FIELD_RANK: /* less one */
        map->rank = (uint8_t)(value + 1);
        return value < TENSOR_DIMENSIONS;
    case FIELD_BOX:
        map->box[dimension] = (uint16_t)value;
        return value >= 1 && value <= MOST_BOX;
    case FIELD_SIZE:
        map->last[dimension] = (uint32_t)value - 1;
        return value >= 1;
    case FIELD_STRIDE:
        map->strides[dimension] = value;
        return value % CHUNK == 0;
    case FIELD_STEP:
        map->steps[dimension] = (uint8_t)value;
        return value >= 1 && value <= MOST_STEP;
    case FIELD_TYPE:
        map->type = value < TYPES ? types[value].type : 0;
        map->element_bytes = value < TYPES ? types[value].bytes : 0;
        return value < TYPES;
    case FIELD_INTERLEAVE:
        return value == 0;
    case FIELD_SWIZZLE:
        map->swizzle = (uint8_t)value;
        return value <= TENSOR_SWIZZLE_128;
    case FIELD_FILL:
        map->fill_nan = (uint8_t)value;
        return value <= 1;
    case FIELD_COUNT:
        break;
    }
    return false;
}

static bool replace(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lane,
                    uint64_t address) {
    enum field field = (enum field)i->detail[FIELD];
    enum ptx_space space = (enum ptx_space)i->detail[SPACE];
    const uint32_t *sources = simt_sources(i);
    bool by_dimension = fields[field].by_dimension, wide = ptx_has_modifier(i->source, "b64");
    uint32_t dimension = by_dimension ? simt_row(warp, sources[1])->u32[lane] : 0;
    const union simt_row *row = simt_row(warp, sources[by_dimension ? 2 : 1]);
    uint64_t value = wide ? row->u64[lane] : row->u32[lane];
    struct tensor_map map;
    if (!move(warp, i, space, SIMT_READ, lane, address, &map)) {
        return false;
    }
    if (!set(&map, field, dimension, value)) {
        simt_fail(warp, i, lane, SIMT_FAULT_TEXTURE, address,
                  "gives a tensor map a %s of %llu%s, which simt's have not", fields[field].name,
                  (unsigned long long)value, by_dimension ? " in a dimension" : "");
        return false;
    }
    return move(warp, i, space, SIMT_WRITE, lane, address, &map);
}

static void run_replace(struct simt_warp *warp, const struct simt_instruction *i) {
    uint64_t addresses[SIMT_LANES];
    simt_lane_addresses(warp, simt_sources(i)[0], (i->detail[FLAGS] & FLAG_NARROW_FIRST) != 0,
                        i->source->operands[0].offset, addresses);
    for (uint32_t rest = warp->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (!replace(warp, i, lane, addresses[lane])) {
            return;
        }
    }
}

/* The first lane copies for the warp. */
static void run_copy(struct simt_warp *warp, const struct simt_instruction *i) {
    uint64_t to[SIMT_LANES], from[SIMT_LANES];
    struct tensor_map map;
    if (!simt_lane_require_all(warp, i)) {
        return;
    }
    simt_lane_addresses(warp, simt_sources(i)[0], (i->detail[FLAGS] & FLAG_NARROW_FIRST) != 0,
                        i->source->operands[0].offset, to);
    simt_lane_addresses(warp, simt_sources(i)[1], (i->detail[FLAGS] & FLAG_NARROW_SECOND) != 0,
                        i->source->operands[1].offset, from);
    if (move(warp, i, PTX_SHARED, SIMT_READ, 0, from[0], &map) &&
        move(warp, i, PTX_GLOBAL, SIMT_WRITE, 0, to[0], &map)) {
        simt_sync_release(warp, SIMT_RELEASES_DEVICE);
    }
}

static bool decode_replace(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    size_t field = 0;
    while (field < FIELD_COUNT && !ptx_has_modifier(in, fields[field].name)) {
        field++;
    }
    if (field == FIELD_COUNT || !ptx_has_modifier(in, "tile") ||
        in->operand_count != (fields[field].by_dimension ? 3u : 2u)) {
        return false;
    }
    out->detail[FIELD] = (uint32_t)field;
    out->detail[SPACE] = simt_lane_space(in);
    out->detail[FLAGS] = simt_lane_address_is_narrow(decoding, 0) ? FLAG_NARROW_FIRST : 0;
    out->run = run_replace;
    return true;
}

bool simt_decode_tensormap(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "tensormap") != 0) {
        return false;
    }
    out->op_class = SIMT_CLASS_OTHER;
    if (ptx_has_modifier(in, "replace")) {
        return decode_replace(decoding, out);
    }
    if (!ptx_has_modifier(in, "cp_fenceproxy") || in->operand_count != 3) {
        return false;
    }
    uint32_t flags = simt_lane_address_is_narrow(decoding, 0) ? FLAG_NARROW_FIRST : 0;
    flags |= simt_lane_address_is_narrow(decoding, 1) ? (uint32_t)FLAG_NARROW_SECOND : 0;
    simt_lane_synchronise(out);
    out->detail[FLAGS] = flags;
    out->run = run_copy;
    return true;
}

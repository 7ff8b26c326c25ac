/*
 * atom and red: lane by lane in their order. In global memory each lane's
 * update is an atomic operation of the host, so that blocks on other host
 * threads see whole updates; shared memory belongs to one host thread.
 */
#include <immintrin.h>
#include <math.h>

#include "common/simt/memory/access/decode_memory.h"
#include "common/simt/memory/access/late.h"

enum operation {
    OP_ADD,
    OP_MIN,
    OP_MAX,
    OP_INC,
    OP_DEC,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_EXCH,
    OP_CAS,
    OP_COUNT
};

static const char *const operation_names[OP_COUNT] = {"add", "min", "max", "inc",  "dec",
                                                      "and", "or",  "xor", "exch", "cas"};

/* What one lane's update needs. */
struct update {
    enum operation operation;
    enum ptx_type type;
    bool flushes; /* fp32 in global memory: subnormals count as zero */
    uint64_t b, c;
};

static float flush(float value) {
    return fabsf(value) < 0x1p-126f ? copysignf(0.0f, value) : value;
}

static uint64_t add_f32(uint64_t a, uint64_t b, bool flushes) {
    uint32_t bits[2] = {(uint32_t)a, (uint32_t)b};
    float values[2];
    memcpy(values, bits, sizeof values);
    float sum = flushes ? flush(flush(values[0]) + flush(values[1])) : values[0] + values[1];
    memcpy(bits, &sum, sizeof sum);
    return bits[0];
}

static uint64_t add_f64(uint64_t a, uint64_t b) {
    double values[2];
    memcpy(&values[0], &a, sizeof a);
    memcpy(&values[1], &b, sizeof b);
    values[0] += values[1];
    memcpy(&a, &values[0], sizeof a);
    return a;
}

/* fp32 has more than twice the bits of fp16 and bf16: rounding twice is rounding once. */
static uint16_t add_f16(uint16_t a, uint16_t b) {
    return (uint16_t)_cvtss_sh(_cvtsh_ss(a) + _cvtsh_ss(b), _MM_FROUND_TO_NEAREST_INT);
}

static uint16_t add_bf16(uint16_t a, uint16_t b) {
    uint32_t sum = (uint32_t)add_f32((uint32_t)a << 16, (uint32_t)b << 16, false);
    if ((sum & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fff;
    }
    return (uint16_t)((sum + 0x7fffu + (sum >> 16 & 1)) >> 16);
}

static uint64_t add(const struct update *update, uint64_t old) {
    uint64_t b = update->b;
    switch (update->type) {
    case PTX_F32:
        return add_f32(old, b, update->flushes);
    case PTX_F64:
        return add_f64(old, b);
    case PTX_F16:
        return add_f16((uint16_t)old, (uint16_t)b);
    case PTX_BF16:
        return add_bf16((uint16_t)old, (uint16_t)b);
    case PTX_F16X2:
        return (uint32_t)add_f16((uint16_t)(old >> 16), (uint16_t)(b >> 16)) << 16 |
               add_f16((uint16_t)old, (uint16_t)b);
    case PTX_BF16X2:
        return (uint32_t)add_bf16((uint16_t)(old >> 16), (uint16_t)(b >> 16)) << 16 |
               add_bf16((uint16_t)old, (uint16_t)b);
    default:
        return old + b;
    }
}

static float bf16_value(uint64_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Signed 32-bit values come zero-extended. */
static bool is_less(enum ptx_type type, uint64_t a, uint64_t b) {
    switch (type) {
    case PTX_F16:
        return _cvtsh_ss((uint16_t)a) < _cvtsh_ss((uint16_t)b);
    case PTX_BF16:
        return bf16_value(a) < bf16_value(b);
    case PTX_S32:
        return (int32_t)(uint32_t)a < (int32_t)(uint32_t)b;
    case PTX_S64:
        return (int64_t)a < (int64_t)b;
    default:
        return a < b;
    }
}

static uint64_t updated(const struct update *update, uint64_t old) {
    uint64_t b = update->b;
    switch (update->operation) {
    case OP_ADD:
        return add(update, old);
    case OP_MIN:
        return is_less(update->type, b, old) ? b : old;
    case OP_MAX:
        return is_less(update->type, old, b) ? b : old;
    case OP_INC:
        return old >= b ? 0 : old + 1;
    case OP_DEC:
        return old == 0 || old > b ? b : old - 1;
    case OP_AND:
        return old & b;
    case OP_OR:
        return old | b;
    case OP_XOR:
        return old ^ b;
    case OP_CAS:
        return old == b ? update->c : old;
    default:
        return b;
    }
}

/* Repeats until no other host thread came in between. */
#define DEFINE_UPDATE(name, type)                                                         \
    static uint64_t name(void *at, const struct update *update) {                         \
        type *word = at;                                                                  \
        type old = __atomic_load_n(word, __ATOMIC_RELAXED);                               \
        while (!__atomic_compare_exchange_n(word, &old, (type)updated(update, old), true, \
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {        \
        }                                                                                 \
        return old;                                                                       \
    }
DEFINE_UPDATE(update16, uint16_t)
DEFINE_UPDATE(update32, uint32_t)
DEFINE_UPDATE(update64, uint64_t)
#undef DEFINE_UPDATE

static uint64_t update_alone(unsigned char *at, const struct update *update, uint32_t bytes) {
    uint64_t old = 0;
    memcpy(&old, at, bytes);
    uint64_t new = updated(update, old);
    memcpy(at, &new, bytes);
    return old;
}

/* Misaligned addresses get here with checks off only; the host can not update those atomically. */
static uint64_t update_shared_by_threads(unsigned char *at, const struct update *update,
                                         uint32_t bytes) {
    if (((uintptr_t)at & (bytes - 1)) != 0) {
        return update_alone(at, update, bytes);
    }
    switch (bytes) {
    case 2:
        return update16(at, update);
    case 4:
        return update32(at, update);
    default:
        return update64(at, update);
    }
}

static uint64_t read_lane(const struct simt_warp *warp, uint32_t offset, bool wide, uint32_t lane,
                          uint32_t bytes) {
    const union simt_row *row = simt_row(warp, offset);
    uint64_t value = wide ? row->u64[lane] : row->u32[lane];
    return bytes >= 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

static void write_lane(const struct simt_warp *warp, uint32_t offset, bool wide, uint32_t lane,
                       uint64_t value) {
    union simt_row *row = simt_row(warp, offset);
    if (wide) {
        row->u64[lane] = value;
    } else {
        row->u32[lane] = (uint32_t)value;
    }
}

/* Sources are src[1 + e], and src[1 + count + e] for cas; their widths follow the destinations'
 * bits in detail[1]: destinations, b, c. */
static void update_lane(const struct simt_request *request, uint32_t lane) {
    const struct simt_instruction *in = request->instruction;
    uint32_t bytes = simt_field(in, SIMT_ELEMENT_SHIFT);
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    struct update update = {.operation = (enum operation)(in->detail[2] & 0xff),
                            .type = (enum ptx_type)(in->detail[2] >> 8 & 0xff),
                            .flushes = request->space == PTX_GLOBAL};
    uint64_t b[SIMT_MAX_VECTOR];
    for (uint32_t e = 0; e < count; e++) {
        b[e] = read_lane(request->warp, in->src[1 + e], in->detail[3] >> e & 1, lane, bytes);
    }
    if (update.operation == OP_CAS) {
        update.c = read_lane(request->warp, in->src[2], in->detail[3] >> 1 & 1, lane, bytes);
    }
    for (uint32_t e = 0; e < count; e++) {
        unsigned char *at = request->host + request->relative[lane] + e * bytes;
        update.b = b[e];
        uint64_t old = request->space == PTX_SHARED ? update_alone(at, &update, bytes)
                                                    : update_shared_by_threads(at, &update, bytes);
        if (e < in->dst_count) {
            write_lane(request->warp, in->dst[e], simt_register_bytes(in, e) > 4, lane, old);
        }
    }
}

/* Atomics of one line of 128 bytes wait for each other. */
static void note_lines(const struct simt_request *request) {
    enum { LINE_BYTES = 128 };
    const struct simt_block *block = request->warp->block;
    uint64_t *lines = block->run->atomic_lines;
    if (lines == NULL || request->space != PTX_GLOBAL) {
        return;
    }
    uint64_t first = request->first - block->caches.first_line * LINE_BYTES;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint64_t offset = first + (uint64_t)(int64_t)request->relative[simt_first_lane(rest)];
        __atomic_fetch_add(&lines[offset / LINE_BYTES % SIMT_ATOMIC_LINES], 1, __ATOMIC_RELAXED);
    }
}

static bool is_integer(enum ptx_type type) {
    return type == PTX_U32 || type == PTX_S32 || type == PTX_U64 || type == PTX_S64;
}

/* Tickets, arrivals, locks: a number goes up or down by no more than a kernel may count at once. */
static bool counts(enum ptx_type type, const unsigned char *before, const unsigned char *after,
                   uint32_t bytes) {
    enum { MOST = 1024 };
    uint64_t a = 0, b = 0;
    memcpy(&a, before, bytes);
    memcpy(&b, after, bytes);
    uint64_t mask = bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * bytes) - 1;
    return (is_integer(type) || type == PTX_B32 || type == PTX_B64) &&
           (((a - b) & mask) <= MOST || ((b - a) & mask) <= MOST);
}

/* @return what became of the lane's word: a loop that waits by atomics does nothing to it. */
static enum simt_update update_and_look(const struct simt_request *request, uint32_t lane) {
    const struct simt_instruction *in = request->instruction;
    uint32_t bytes = simt_field(in, SIMT_ELEMENT_SHIFT) * simt_field(in, SIMT_COUNT_SHIFT);
    const unsigned char *at = request->host + request->relative[lane];
    unsigned char before[SIMT_MAX_VECTOR * sizeof(uint64_t)];
    memcpy(before, at, bytes);
    update_lane(request, lane);
    enum ptx_type type = (enum ptx_type)(in->detail[2] >> 8 & 0xff);
    return memcmp(before, at, bytes) == 0    ? SIMT_UPDATE_NOTHING
           : counts(type, before, at, bytes) ? SIMT_UPDATE_COUNTS
                                             : SIMT_UPDATE_CHANGES;
}

/* Where other launches run beside this one it counts as writing only when it changes something. */
static void move_and_look(const struct simt_request *request) {
    struct simt_block *block = request->warp->block;
    bool changed = false;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        enum simt_update how = update_and_look(request, lane);
        changed = changed || how != SIMT_UPDATE_NOTHING;
        if (block->clock != NULL && request->space == PTX_GLOBAL) {
            simt_block_clock_update(request, lane, how);
        }
    }
    if (!changed && block->run->yield != NULL && block->shadow != NULL) {
        block->writes--;
    }
}

static void move_atomic(const struct simt_request *request) {
    note_lines(request);
    const struct simt_block *block = request->warp->block;
    if (block->run->yield != NULL || block->clock != NULL) {
        move_and_look(request);
        return;
    }
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        update_lane(request, simt_first_lane(rest));
    }
}

#define DEFINE_ATOMIC(name, space)                                                \
    static void name(struct simt_warp *warp, const struct simt_instruction *in) { \
        simt_sync_release(warp, in->detail[0]);                                   \
        simt_late_begin(warp, in);                                                \
        simt_request_run(warp, in, space, SIMT_ATOMIC, move_atomic);              \
        simt_sync_acquire(warp, in->detail[0]);                                   \
        simt_late_end(warp, in, true);                                            \
    }
DEFINE_ATOMIC(atomic_generic, PTX_GENERIC)
DEFINE_ATOMIC(atomic_global, PTX_GLOBAL)
DEFINE_ATOMIC(atomic_shared, PTX_SHARED)
#undef DEFINE_ATOMIC

static bool find_operation(const struct ptx_instruction *source, enum operation *operation) {
    for (size_t n = 0; n < OP_COUNT; n++) {
        if (ptx_has_modifier(source, operation_names[n])) {
            *operation = (enum operation)n;
            return true;
        }
    }
    return false;
}

static bool is_bits(enum ptx_type type) {
    return type == PTX_B32 || type == PTX_B64 || type == PTX_U32 || type == PTX_S32 ||
           type == PTX_U64 || type == PTX_S64;
}

static bool is_half(enum ptx_type type) {
    return type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2;
}

static bool is_known(enum operation operation, const struct simt_memory_form *form, bool noftz) {
    enum ptx_type type = form->type;
    if (form->count > 1 && (operation != OP_ADD || (type != PTX_F32 && !is_half(type)))) {
        return false;
    }
    switch (operation) {
    case OP_ADD:
        return is_integer(type) || type == PTX_F32 || type == PTX_F64 || (is_half(type) && noftz);
    case OP_MIN:
    case OP_MAX:
        return is_integer(type) || type == PTX_F16 || type == PTX_BF16; /* cp.reduce alone */
    case OP_INC:
    case OP_DEC:
        return type == PTX_U32;
    case OP_CAS:
        return is_bits(type) || type == PTX_B16;
    case OP_EXCH:
        return is_bits(type) || type == PTX_F32 || type == PTX_F64;
    default:
        return is_bits(type);
    }
}

bool simt_decode_atomic(const struct ptx_instruction *source, const struct simt_memory_form *form,
                        struct simt_instruction *instruction) {
    enum operation operation;
    if (!find_operation(source, &operation) ||
        !is_known(operation, form, ptx_has_modifier(source, "noftz"))) {
        return false;
    }
    switch (form->space) {
    case PTX_GENERIC:
        instruction->run = atomic_generic;
        break;
    case PTX_GLOBAL:
        instruction->run = atomic_global;
        break;
    case PTX_SHARED:
        instruction->run = atomic_shared;
        break;
    default:
        return false;
    }
    if (operation == OP_EXCH) {
        instruction->detail[0] |= SIMT_BLIND;
    }
    instruction->detail[2] = (uint32_t)operation | (uint32_t)form->type << 8;
    instruction->op_class = SIMT_CLASS_ATOMIC;
    instruction->flops = form->type >= PTX_F16 && operation == OP_ADD ? (uint8_t)form->count : 0;
    return true;
}

bool simt_reduction_names(const char *modifier) {
    for (size_t n = 0; n < OP_COUNT; n++) {
        if (strcmp(modifier, operation_names[n]) == 0) {
            return true;
        }
    }
    return false;
}

bool simt_reduction_find(const struct ptx_instruction *source, enum ptx_type type,
                         struct simt_reduction *reduction) {
    const struct simt_memory_form form = {.type = type, .count = 1};
    enum operation operation;
    if (!find_operation(source, &operation) || operation >= OP_EXCH) {
        return false;
    }
    *reduction = (struct simt_reduction){(uint8_t)operation, (uint8_t)type};
    return is_known(operation, &form, true);
}

enum { REDUCTION_TYPE_SHIFT = 8, REDUCTION_IS_SET = 1 << 16 };

uint32_t simt_reduction_pack(const struct simt_reduction *reduction) {
    return reduction->operation | (uint32_t)reduction->type << REDUCTION_TYPE_SHIFT |
           REDUCTION_IS_SET;
}

struct simt_reduction simt_reduction_unpack(uint32_t packed) {
    return (struct simt_reduction){(uint8_t)packed, (uint8_t)(packed >> REDUCTION_TYPE_SHIFT)};
}

void simt_reduce(const struct simt_reduction *reduction, unsigned char *at,
                 const unsigned char *with, size_t bytes) {
    struct update update = {.operation = (enum operation)reduction->operation,
                            .type = (enum ptx_type)reduction->type};
    size_t size = ptx_type_size(update.type);
    for (size_t done = 0; done + size <= bytes; done += size) {
        update.b = 0;
        memcpy(&update.b, with + done, size);
        update_shared_by_threads(at + done, &update, (uint32_t)size);
    }
}

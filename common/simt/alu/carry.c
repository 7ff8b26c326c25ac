/**
 * @file carry.c
 * @brief Arithmetic of several words: add.cc addc sub.cc subc mad.cc madc.
 *
 * The carry is a bit a lane in warp->carry; of a subtraction it is the borrow.
 * detail[0]: 1: reads the carry, 2: writes it; detail[1]: 0 add, 1 subtract, 2
 * product's low half, 3 its high half; detail[2]: signed product.
 */
#include "common/simt/alu/alu.h"
#include "common/simt/alu/row_ops.h"

enum { READS_CARRY = 1, WRITES_CARRY = 2 };
enum carry_operation { CARRY_ADD, CARRY_SUBTRACT, CARRY_LOW, CARRY_HIGH };

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

static inline uint32_t low_product_u32(uint32_t x, uint32_t y, bool high, bool is_signed) {
    const uint64_t product =
        is_signed ? (uint64_t)((int64_t)(int32_t)x * (int32_t)y) : (uint64_t)x * y;

    return (uint32_t)(high ? product >> 32 : product);
}

static inline uint64_t low_product_u64(uint64_t x, uint64_t y, bool high, bool is_signed) {
    const uint128 product = is_signed ? (uint128)((int128)(int64_t)x * (int64_t)y) : (uint128)x * y;

    return (uint64_t)(high ? product >> 64 : product);
}

/** Sum or difference with the carry of each lane; @p carry receives a bit in each element. */
#define DEFINE_CARRY(T, VIEW, COMMIT)                                                            \
    static void add_rows_##VIEW(const struct simt_warp *warp, bool subtract, uint32_t carry_in,  \
                                const T *x, const T *y, T *sum, uint32_t *carry) {               \
        (void)warp;                                                                              \
        ROW_EACH_LANE(i) {                                                                       \
            const T in = (carry_in >> i) & 1;                                                    \
            const T step = subtract ? x[i] - y[i] : x[i] + y[i];                                 \
            const T total = subtract ? step - in : step + in;                                    \
            const bool first = subtract ? x[i] < y[i] : step < x[i];                             \
            const bool second = subtract ? step < in : total < step;                             \
            sum[i] = total;                                                                      \
            carry[i] = first | second;                                                           \
        }                                                                                        \
    }                                                                                            \
    ROW_HANDLER(carry_##VIEW) {                                                                  \
        const uint32_t operation = instruction->detail[1];                                       \
        const bool product = operation >= CARRY_LOW;                                             \
        const bool high = operation == CARRY_HIGH;                                               \
        ROW_SOURCE(a, 0);                                                                        \
        ROW_SOURCE(b, 1);                                                                        \
        T x[SIMT_LANES];                                                                         \
        T sum[SIMT_LANES];                                                                       \
        uint32_t carry[SIMT_LANES];                                                              \
        if (product) {                                                                           \
            ROW_EACH_LANE(i) {                                                                   \
                x[i] = low_product_##VIEW(a->VIEW[i], b->VIEW[i], high, instruction->detail[2]); \
            }                                                                                    \
        }                                                                                        \
        const T *y = product ? simt_row(warp, instruction->src[2])->VIEW : b->VIEW;              \
        const uint32_t in = instruction->detail[0] & READS_CARRY ? warp->carry : 0;              \
        add_rows_##VIEW(warp, operation == CARRY_SUBTRACT, in, product ? x : a->VIEW, y, sum,    \
                        carry);                                                                  \
        if (instruction->detail[0] & WRITES_CARRY) {                                             \
            commit_carry(warp, carry);                                                           \
        }                                                                                        \
        COMMIT(warp, instruction->dst[0], sum);                                                  \
    }

static void commit_carry(struct simt_warp *warp, const uint32_t carry[SIMT_LANES]) {
    uint32_t bits = 0;

    for (size_t i = 0; i < SIMT_LANES; i++) {
        bits |= carry[i] << i;
    }
    warp->carry = (warp->carry & ~warp->mask) | (bits & warp->mask);
}

DEFINE_CARRY(uint32_t, u32, row_commit32)
DEFINE_CARRY(uint64_t, u64, row_commit64)

struct carry_entry {
    const char *base;
    enum carry_operation operation;
    bool reads;
};

static const struct carry_entry entries[] = {
    {"add", CARRY_ADD, false},      {"addc", CARRY_ADD, true}, {"sub", CARRY_SUBTRACT, false},
    {"subc", CARRY_SUBTRACT, true}, {"mad", CARRY_LOW, false}, {"madc", CARRY_LOW, true},
};

static const struct carry_entry *find_entry(const char *base) {
    for (size_t i = 0; i < COUNT(entries); i++) {
        if (ptx_is_same(base, entries[i].base)) {
            return &entries[i];
        }
    }
    return NULL;
}

/** Reads [.hi|.lo][.cc].TYPE. @return false when there is anything else */
static bool read_modifiers(const struct ptx_instruction *source, struct simt_instruction *out,
                           bool product) {
    size_t next = 0;

    if (product) {
        if (source->modifier_count == 0) {
            return false;
        }
        const char *half = source->modifiers[next++];
        if (strcmp(half, "hi") != 0 && strcmp(half, "lo") != 0) {
            return false;
        }
        out->detail[1] = strcmp(half, "hi") == 0 ? CARRY_HIGH : CARRY_LOW;
    }
    if (next < source->modifier_count && strcmp(source->modifiers[next], "cc") == 0) {
        out->detail[0] |= WRITES_CARRY;
        next++;
    }
    return next + 1 == source->modifier_count && out->detail[0] != 0;
}

bool alu_decode_carry(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    const struct ptx_instruction *source = decoding->source;
    const struct carry_entry *entry = find_entry(source->base);
    const enum ptx_type type = ptx_modifier_type(source, 0);
    const bool is_signed = type == PTX_S32 || type == PTX_S64;

    if (entry == NULL || !(is_signed || type == PTX_U32 || type == PTX_U64)) {
        return false;
    }
    instruction->detail[0] = entry->reads ? READS_CARRY : 0;
    instruction->detail[1] = entry->operation;
    instruction->detail[2] = is_signed;
    if (!read_modifiers(source, instruction, entry->operation == CARRY_LOW) ||
        !alu_operands_fit(decoding)) {
        return false;
    }
    instruction->run = ptx_type_size(type) == 8 ? carry_u64 : carry_u32;
    instruction->op_class = SIMT_CLASS_INTEGER;
    return true;
}

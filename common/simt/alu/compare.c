/**
 * @file compare.c
 * @brief setp set selp slct, and the logic of predicates: and or xor not mov .pred.
 *
 * A comparison of a row is a bit mask: eight lanes (four of 64 bits) are compared
 * at a time and their sign bits gathered. Each type has six handlers' worth of
 * comparisons, lt le eq and whether operands are unordered; the rest follows.
 */
#include "common/simt/alu/half.h"

/** Comparisons: one of the relations, perhaps inverted, perhaps true for NaN. */
enum relation { LESS, LESS_EQUAL, EQUAL, ORDERED };

struct comparison_name {
    const char *name;
    enum relation relation;
    bool swapped;  /**< a > b is b < a */
    bool inverted; /**< ne is not eq */
    uint8_t kinds; /**< which operands have it */
};

enum { KIND_SIGNED = 1, KIND_UNSIGNED = 2, KIND_BITS = 4, KIND_FLOAT = 8 };
#define ALL (KIND_SIGNED | KIND_UNSIGNED | KIND_BITS | KIND_FLOAT)
#define NUMBERS (KIND_SIGNED | KIND_UNSIGNED | KIND_FLOAT)

/* Inverting makes NaN true: ltu is "not >=". For ne of floats see find_comparison(). */
static const struct comparison_name comparison_names[] = {
    {"eq", EQUAL, false, false, ALL},
    {"ne", EQUAL, false, true, ALL},
    {"lt", LESS, false, false, NUMBERS},
    {"le", LESS_EQUAL, false, false, NUMBERS},
    {"gt", LESS, true, false, NUMBERS},
    {"ge", LESS_EQUAL, true, false, NUMBERS},
    {"lo", LESS, false, false, KIND_UNSIGNED},
    {"ls", LESS_EQUAL, false, false, KIND_UNSIGNED},
    {"hi", LESS, true, false, KIND_UNSIGNED},
    {"hs", LESS_EQUAL, true, false, KIND_UNSIGNED},
    {"equ", EQUAL, false, false, KIND_FLOAT},
    {"neu", EQUAL, false, true, KIND_FLOAT},
    {"ltu", LESS_EQUAL, true, true, KIND_FLOAT},
    {"leu", LESS, true, true, KIND_FLOAT},
    {"gtu", LESS_EQUAL, false, true, KIND_FLOAT},
    {"geu", LESS, false, true, KIND_FLOAT},
    {"num", ORDERED, false, false, KIND_FLOAT},
    {"nan", ORDERED, false, true, KIND_FLOAT},
};

/* Vectors of eight and four lanes, of any alignment. */
typedef int32_t lanes32 __attribute__((vector_size(32)));
typedef int64_t lanes64 __attribute__((vector_size(32)));

static inline uint32_t gather32(lanes32 truth) {
    return (uint32_t)_mm256_movemask_ps((__m256)truth);
}

static inline uint32_t gather64(lanes64 truth) {
    return (uint32_t)_mm256_movemask_pd((__m256d)truth);
}

#define COMPARE_LESS(x, y) ((x) < (y))
#define COMPARE_LESS_EQUAL(x, y) ((x) <= (y))
#define COMPARE_EQUAL(x, y) ((x) == (y))
#define COMPARE_ORDERED(x, y) (((x) == (x)) & ((y) == (y)))

/** A function that compares two rows of T. STEP lanes a vector. */
#define DEFINE_ROW(NAME, T, MASK, STEP, GATHER, COMPARE)   \
    static uint32_t NAME(const void *a, const void *b) {   \
        typedef T vector __attribute__((vector_size(32))); \
        uint32_t bits = 0;                                 \
        for (size_t i = 0; i < SIMT_LANES; i += STEP) {    \
            vector x;                                      \
            vector y;                                      \
            memcpy(&x, (const T *)a + i, sizeof x);        \
            memcpy(&y, (const T *)b + i, sizeof y);        \
            bits |= GATHER((MASK)COMPARE(x, y)) << i;      \
        }                                                  \
        return bits;                                       \
    }
#define DEFINE_TYPE(S, T, MASK, STEP, GATHER)                             \
    DEFINE_ROW(less_##S, T, MASK, STEP, GATHER, COMPARE_LESS)             \
    DEFINE_ROW(less_equal_##S, T, MASK, STEP, GATHER, COMPARE_LESS_EQUAL) \
    DEFINE_ROW(equal_##S, T, MASK, STEP, GATHER, COMPARE_EQUAL)           \
    DEFINE_ROW(ordered_##S, T, MASK, STEP, GATHER, COMPARE_ORDERED)

DEFINE_TYPE(u32, uint32_t, lanes32, 8, gather32)
DEFINE_TYPE(s32, int32_t, lanes32, 8, gather32)
DEFINE_TYPE(f32, float, lanes32, 8, gather32)
DEFINE_TYPE(u64, uint64_t, lanes64, 4, gather64)
DEFINE_TYPE(s64, int64_t, lanes64, 4, gather64)
DEFINE_TYPE(f64, double, lanes64, 4, gather64)

/* detail[0]: enum alu_flag; detail[1]: boolean operation; detail[2]: the comparison (below);
 * detail[3]: type of the operands. */
enum boolean { BOOLEAN_NONE, BOOLEAN_AND, BOOLEAN_OR, BOOLEAN_XOR };
enum { RELATION_BITS = 3, IS_SWAPPED = 4, IS_INVERTED = 8, NAN_IS_FALSE = 16, NAN_IS_TRUE = 32 };

static uint32_t combine(uint32_t bits, uint32_t other, uint32_t boolean) {
    switch (boolean) {
    case BOOLEAN_AND:
        return bits & other;
    case BOOLEAN_OR:
        return bits | other;
    case BOOLEAN_XOR:
        return bits ^ other;
    default:
        return bits;
    }
}

/** The relation of two rows; RELATIONS of one type as a switch the compiler can see through. */
#define RELATIONS(S, relation, a, b)                   \
    ((relation) == LESS         ? less_##S(a, b)       \
     : (relation) == LESS_EQUAL ? less_equal_##S(a, b) \
     : (relation) == EQUAL      ? equal_##S(a, b)      \
                                : ordered_##S(a, b))

/** Applies swap, inversion and the treatment of NaN. */
#define COMPARISON(S, detail, a, b)                                                     \
    finish_comparison(detail,                                                           \
                      (detail)&IS_SWAPPED ? RELATIONS(S, (detail)&RELATION_BITS, b, a)  \
                                          : RELATIONS(S, (detail)&RELATION_BITS, a, b), \
                      (detail) & (NAN_IS_FALSE | NAN_IS_TRUE) ? ordered_##S(a, b) : UINT32_MAX)

static inline uint32_t finish_comparison(uint32_t detail, uint32_t bits, uint32_t ordered) {
    bits = detail & IS_INVERTED ? ~bits : bits;
    bits = detail & NAN_IS_FALSE ? bits & ordered : bits;
    return detail & NAN_IS_TRUE ? bits | ~ordered : bits;
}

static inline void write_predicates(const struct simt_warp *warp,
                                    const struct simt_instruction *instruction, uint32_t bits) {
    const uint32_t boolean = instruction->detail[1];
    const uint32_t other = boolean == BOOLEAN_NONE ? 0 : row_predicate(warp, instruction, 2);

    row_commit_predicate(warp, instruction->pred_dst[0], combine(bits, other, boolean));
    row_commit_predicate(warp, instruction->pred_dst[1], combine(~bits, other, boolean));
}

#define DEFINE_SETP(S, VIEW)                                                          \
    ROW_HANDLER(setp_##S) {                                                           \
        ROW_SOURCE(a, 0);                                                             \
        ROW_SOURCE(b, 1);                                                             \
        const uint32_t detail = instruction->detail[2];                               \
        write_predicates(warp, instruction, COMPARISON(S, detail, a->VIEW, b->VIEW)); \
    }

DEFINE_SETP(u32, u32)
DEFINE_SETP(s32, s32)
DEFINE_SETP(f32, f32)
DEFINE_SETP(u64, u64)
DEFINE_SETP(s64, s64)
DEFINE_SETP(f64, f64)

/** A row in a form that one of the six comparisons takes: 16 bits widened, subnormals flushed. */
static void widen_row(const union simt_row *row, enum ptx_type type, uint32_t shift, bool flush,
                      union simt_row *wide) {
    ROW_EACH_LANE(i) {
        const uint32_t word = row->u32[i] >> shift & 0xffff;
        const uint32_t half = flush && (word & 0x7c00) == 0 ? word & 0x8000 : word;

        wide->u32[i] = type == PTX_F16 || type == PTX_F16X2 ? row_bits_of_float(half_to_float(half))
                       : type == PTX_BF16 || type == PTX_BF16X2 ? word << 16
                       : type == PTX_F32 ? row_bits_of_float(float_flush(row->f32[i]))
                       : type == PTX_S16 ? (uint32_t)(int32_t)(int16_t)word
                                         : word;
    }
}

/** Compares source rows 0 and 1 of any type, halves at @p shift. */
static uint32_t compare_any(const struct simt_warp *warp,
                            const struct simt_instruction *instruction, uint32_t shift) {
    const enum ptx_type type = (enum ptx_type)instruction->detail[3];
    const uint32_t detail = instruction->detail[2];
    const bool flush = instruction->detail[0] & ALU_FTZ;
    const union simt_row *a = simt_row(warp, instruction->src[0]);
    const union simt_row *b = simt_row(warp, instruction->src[1]);
    union simt_row x;
    union simt_row y;

    switch (type) {
    case PTX_B32:
    case PTX_U32:
        return COMPARISON(u32, detail, a->u32, b->u32);
    case PTX_S32:
        return COMPARISON(s32, detail, a->s32, b->s32);
    case PTX_B64:
    case PTX_U64:
        return COMPARISON(u64, detail, a->u64, b->u64);
    case PTX_S64:
        return COMPARISON(s64, detail, a->s64, b->s64);
    case PTX_F64:
        return COMPARISON(f64, detail, a->f64, b->f64);
    default:
        break;
    }
    if (type == PTX_F32 && !flush) {
        return COMPARISON(f32, detail, a->f32, b->f32);
    }
    widen_row(a, type, shift, flush, &x);
    widen_row(b, type, shift, flush, &y);
    return type == PTX_B16 || type == PTX_U16 ? COMPARISON(u32, detail, x.u32, y.u32)
           : type == PTX_S16                  ? COMPARISON(s32, detail, x.s32, y.s32)
                                              : COMPARISON(f32, detail, x.f32, y.f32);
}

ROW_HANDLER(setp_any) {
    write_predicates(warp, instruction, compare_any(warp, instruction, 0));
}

/** f16x2, bf16x2: the first predicate is of the low halves, the second of the high ones. */
ROW_HANDLER(setp_pairs) {
    const uint32_t boolean = instruction->detail[1];
    const uint32_t other = boolean == BOOLEAN_NONE ? 0 : row_predicate(warp, instruction, 2);
    const uint32_t low = compare_any(warp, instruction, 0);
    const uint32_t high = compare_any(warp, instruction, 16);

    row_commit_predicate(warp, instruction->pred_dst[0], combine(low, other, boolean));
    row_commit_predicate(warp, instruction->pred_dst[1], combine(high, other, boolean));
}

/** set: `immediate` is what true is in the destination's low half and in its high half. */
ROW_HANDLER(set_any) {
    const enum ptx_type type = (enum ptx_type)instruction->detail[3];
    const bool pairs = type == PTX_F16X2 || type == PTX_BF16X2;
    const uint32_t boolean = instruction->detail[1];
    const uint32_t other = boolean == BOOLEAN_NONE ? 0 : row_predicate(warp, instruction, 2);
    const uint32_t low = combine(compare_any(warp, instruction, 0), other, boolean);
    const uint32_t high = pairs ? combine(compare_any(warp, instruction, 16), other, boolean) : low;
    const uint32_t yes = (uint32_t)instruction->immediate;
    uint32_t d[SIMT_LANES];

    ROW_EACH_LANE(i) {
        d[i] = ((low >> i & 1 ? yes : 0) & 0xffff) | ((high >> i & 1 ? yes : 0) & 0xffff0000);
    }
    row_commit32(warp, instruction->dst[0], d);
}

ROW_HANDLER(selp_32) {
    const uint32_t choice = row_predicate(warp, instruction, 2);
    ROW_DESTINATION;
    ROW_SOURCE(a, 0);
    ROW_SOURCE(b, 1);
    ROW_STORE(uint32_t, u32, , choice >> i & 1 ? a->u32[i] : b->u32[i]);
}

ROW_HANDLER(selp_64) {
    const uint32_t choice = row_predicate(warp, instruction, 2);
    ROW_DESTINATION;
    ROW_SOURCE(a, 0);
    ROW_SOURCE(b, 1);
    ROW_STORE(uint64_t, u64, , choice >> i & 1 ? a->u64[i] : b->u64[i]);
}

/* slct: a where c >= 0, else b; of floats NaN chooses b and -0 chooses a. detail[0]: ALU_FTZ. */
#define SLCT(NAME, T, V, CHOICE)                                                    \
    ROW_HANDLER(NAME) {                                                             \
        ROW_DESTINATION;                                                            \
        ROW_SOURCE(a, 0);                                                           \
        ROW_SOURCE(b, 1);                                                           \
        ROW_SOURCE(c, 2);                                                           \
        ROW_STORE(T, V, const T x = a->V[i]; const T y = b->V[i];, CHOICE ? x : y); \
    }

SLCT(slct_32_s32, uint32_t, u32, c->s32[i] >= 0)
SLCT(slct_64_s32, uint64_t, u64, c->s32[i] >= 0)
SLCT(slct_32_f32, uint32_t, u32, c->f32[i] >= 0)
SLCT(slct_64_f32, uint64_t, u64, c->f32[i] >= 0)
SLCT(slct_32_f32_ftz, uint32_t, u32, float_flush(c->f32[i]) >= 0)
SLCT(slct_64_f32_ftz, uint64_t, u64, float_flush(c->f32[i]) >= 0)

ROW_HANDLER(predicate_logic) {
    const uint32_t a = row_predicate(warp, instruction, 0);
    const uint32_t b = row_predicate(warp, instruction, 1);

    row_commit_predicate(warp, instruction->pred_dst[0], combine(a, b, instruction->detail[1]));
}

ROW_HANDLER(predicate_not) {
    row_commit_predicate(warp, instruction->pred_dst[0], ~row_predicate(warp, instruction, 0));
}

ROW_HANDLER(predicate_move) {
    row_commit_predicate(warp, instruction->pred_dst[0], row_predicate(warp, instruction, 0));
}

struct type_kind {
    enum ptx_type type;
    uint8_t kind;
    simt_handler *setp;
};

static const struct type_kind type_kinds[] = {
    {PTX_B16, KIND_BITS, setp_any},       {PTX_U16, KIND_UNSIGNED, setp_any},
    {PTX_S16, KIND_SIGNED, setp_any},     {PTX_B32, KIND_BITS, setp_u32},
    {PTX_U32, KIND_UNSIGNED, setp_u32},   {PTX_S32, KIND_SIGNED, setp_s32},
    {PTX_B64, KIND_BITS, setp_u64},       {PTX_U64, KIND_UNSIGNED, setp_u64},
    {PTX_S64, KIND_SIGNED, setp_s64},     {PTX_F32, KIND_FLOAT, setp_f32},
    {PTX_F64, KIND_FLOAT, setp_f64},      {PTX_F16, KIND_FLOAT, setp_any},
    {PTX_F16X2, KIND_FLOAT, setp_pairs},  {PTX_BF16, KIND_FLOAT, setp_any},
    {PTX_BF16X2, KIND_FLOAT, setp_pairs},
};

static const struct type_kind *find_kind(enum ptx_type type) {
    for (size_t i = 0; i < COUNT(type_kinds); i++) {
        if (type_kinds[i].type == type) {
            return &type_kinds[i];
        }
    }
    return NULL;
}

/** Packs the named comparison for operands of a kind. @return false when they have none such. */
static bool find_comparison(const char *name, uint8_t kind, uint32_t *detail) {
    for (size_t i = 0; i < COUNT(comparison_names); i++) {
        const struct comparison_name *entry = &comparison_names[i];

        if (strcmp(name, entry->name) == 0 && (entry->kinds & kind)) {
            *detail = (uint32_t)entry->relation | (entry->swapped ? IS_SWAPPED : 0) |
                      (entry->inverted ? IS_INVERTED : 0);
            /* The two whose own outcome for NaN is the other one. */
            if (kind == KIND_FLOAT && strcmp(name, "ne") == 0) {
                *detail |= NAN_IS_FALSE;
            }
            if (strcmp(name, "equ") == 0) {
                *detail |= NAN_IS_TRUE;
            }
            return true;
        }
    }
    return false;
}

static enum boolean find_boolean(const char *name) {
    return strcmp(name, "and") == 0   ? BOOLEAN_AND
           : strcmp(name, "or") == 0  ? BOOLEAN_OR
           : strcmp(name, "xor") == 0 ? BOOLEAN_XOR
                                      : BOOLEAN_NONE;
}

/** Reads CMP[.BOOL][.ftz].TYPE...: detail[0..3]. @return the compared type's kind, or NULL. */
static const struct type_kind *read_comparison(const struct ptx_instruction *source, size_t types,
                                               struct simt_instruction *out) {
    const enum ptx_type type = ptx_modifier_type(source, types - 1);
    const struct type_kind *kind = find_kind(type);
    size_t next = 1;

    if (kind == NULL || source->modifier_count < 1 + types ||
        !find_comparison(source->modifiers[0], kind->kind, &out->detail[2])) {
        return NULL;
    }
    out->detail[0] = 0;
    out->detail[1] = find_boolean(source->modifiers[next]);
    out->detail[3] = type;
    next += out->detail[1] != BOOLEAN_NONE;
    if (next < source->modifier_count && strcmp(source->modifiers[next], "ftz") == 0) {
        out->detail[0] = ALU_FTZ;
        next++;
    }
    const bool can_flush = type == PTX_F32 || type == PTX_F16 || type == PTX_F16X2;
    return next + types == source->modifier_count && (can_flush || out->detail[0] == 0) ? kind
                                                                                        : NULL;
}

static bool has_operands(const struct ptx_instruction *source, const struct simt_instruction *out) {
    return source->operand_count == (out->detail[1] == BOOLEAN_NONE ? 3u : 4u);
}

static bool decode_setp(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    const struct type_kind *kind = read_comparison(source, 1, out);

    if (kind == NULL || !has_operands(source, out)) {
        return false;
    }
    out->run = out->detail[0] & ALU_FTZ && kind->type == PTX_F32 ? setp_any : kind->setp;
    if (source->operands[0].kind == PTX_OPERAND_PAIR && source->operands[0].element_count == 2 &&
        source->operands[0].elements[0].kind == PTX_OPERAND_DISCARD) {
        out->pred_dst[1] = out->pred_dst[0];
        out->pred_dst[0] = -1;
    }
    return true;
}

/** Value of true by destination type; 0: not a destination. */
static uint32_t value_of_true(enum ptx_type destination, enum ptx_type compared) {
    const bool half = ptx_type_size(compared) == 2;

    switch (destination) {
    case PTX_U32:
    case PTX_S32:
        return UINT32_MAX;
    case PTX_F32:
        return 0x3f800000;
    case PTX_U16:
    case PTX_S16:
        return half ? 0xffff : 0;
    case PTX_F16:
        return half ? 0x3c00 : 0;
    case PTX_BF16:
        return half ? 0x3f80 : 0;
    case PTX_F16X2:
        return compared == PTX_F16X2 ? 0x3c003c00 : 0;
    case PTX_BF16X2:
        return compared == PTX_BF16X2 ? 0x3f803f80 : 0;
    default:
        return 0;
    }
}

static bool decode_set(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    const struct type_kind *kind = read_comparison(source, 2, out);
    const enum ptx_type destination = ptx_modifier_type(source, 0);

    if (kind == NULL || !has_operands(source, out)) {
        return false;
    }
    out->immediate = value_of_true(destination, kind->type);
    out->run = set_any;
    return out->immediate != 0;
}

static bool decode_selp(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const enum ptx_type type = ptx_modifier_type(decoding->source, 0);
    const size_t size = ptx_type_size(type);

    out->run = size == 8 ? selp_64 : selp_32;
    return decoding->source->modifier_count == 1 && size >= 2 && size <= 8;
}

static bool decode_slct(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    const size_t size = ptx_type_size(ptx_modifier_type(source, 0));
    const enum ptx_type choice = ptx_modifier_type(source, 1);
    const bool flush = ptx_has_modifier(source, "ftz");

    if (source->modifier_count != 2u + flush || (size != 4 && size != 8) ||
        (choice != PTX_S32 && choice != PTX_F32) || (flush && choice != PTX_F32)) {
        return false;
    }
    out->run = choice == PTX_S32 ? (size == 8 ? slct_64_s32 : slct_32_s32)
               : flush           ? (size == 8 ? slct_64_f32_ftz : slct_32_f32_ftz)
                                 : (size == 8 ? slct_64_f32 : slct_32_f32);
    return true;
}

static bool decode_predicate(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;

    if (source->modifier_count != 1 || strcmp(source->modifiers[0], "pred") != 0) {
        return false;
    }
    out->detail[1] = find_boolean(source->base);
    out->run = out->detail[1] != BOOLEAN_NONE     ? predicate_logic
               : strcmp(source->base, "not") == 0 ? predicate_not
               : strcmp(source->base, "mov") == 0 ? predicate_move
                                                  : NULL;
    return out->run != NULL;
}

bool simt_decode_compare(const struct simt_decoding *decoding,
                         struct simt_instruction *instruction) {
    const char *base = decoding->source->base;
    const bool known = strcmp(base, "setp") == 0   ? decode_setp(decoding, instruction)
                       : strcmp(base, "set") == 0  ? decode_set(decoding, instruction)
                       : strcmp(base, "selp") == 0 ? decode_selp(decoding, instruction)
                       : strcmp(base, "slct") == 0 ? decode_slct(decoding, instruction)
                                                   : decode_predicate(decoding, instruction);

    if (!known || !alu_operands_fit(decoding)) {
        return false;
    }
    instruction->op_class = SIMT_CLASS_PREDICATE;
    return true;
}

#include "common/simt/alu/testing.h"

#include <inttypes.h>
#include <string.h>

#include "common/testing/testing.h"

enum { ROUNDS = 60 };

static size_t register_bits(const struct alu_fixture *f, size_t n) {
    return 8 * ptx_type_size(f->registers[n].type);
}

uint64_t alu_make_integer(struct rng *rng, size_t n, size_t bits) {
    const uint64_t top = (uint64_t)1 << (bits - 1);
    const uint64_t edges[] = {
        0,  1,  2,  3,   7,   8,   15,      16,      31,       32,         33,
        63, 64, 65, 255, 256, top, top - 1, top + 1, top >> 1, UINT64_MAX, UINT64_MAX - 1};
    const uint64_t kind = rng_below(rng, 4);

    (void)n;
    return kind < 2    ? edges[rng_below(rng, COUNT(edges))]
           : kind == 2 ? rng_u64(rng)
                       : rng_u64(rng) >> rng_below(rng, 64);
}

/** A float of any format from its fields; edge cases are extreme exponents and fractions. */
static uint64_t make_fields(struct rng *rng, size_t exponent_bits, size_t fraction_bits) {
    const uint64_t most = ((uint64_t)1 << exponent_bits) - 1;
    const uint64_t ones = ((uint64_t)1 << fraction_bits) - 1;
    const uint64_t exponents[] = {0, 0, 1, 2, most, most - 1, most / 2, most / 2 + 1, most / 2 - 1};
    const uint64_t fractions[] = {0, 0, 1, ones, ones - 1, ones / 2, ones / 2 + 1};
    uint64_t exponent = rng_u64(rng) & most;
    uint64_t fraction = rng_u64(rng) & ones;

    if (rng_below(rng, 2) == 0) {
        exponent = exponents[rng_below(rng, COUNT(exponents))];
    } else if (rng_below(rng, 2) == 0) {
        exponent = most / 2 - 4 + rng_below(rng, 8); /* near 1, so that operands interact */
    }
    if (rng_below(rng, 2) == 0) {
        fraction = fractions[rng_below(rng, COUNT(fractions))];
    }
    return rng_below(rng, 2) << (exponent_bits + fraction_bits) | exponent << fraction_bits |
           fraction;
}

uint64_t alu_make_float(struct rng *rng, size_t n, size_t bits) {
    (void)n;
    return bits == 64   ? make_fields(rng, 11, 52)
           : bits == 32 ? make_fields(rng, 8, 23)
                        : make_fields(rng, 5, 10);
}

uint64_t alu_make_bfloat(struct rng *rng, size_t n, size_t bits) {
    return bits == 16 ? make_fields(rng, 8, 7) : alu_make_float(rng, n, bits);
}

static size_t operand_bits(const struct alu_fixture *f, size_t n) {
    const size_t bits = register_bits(f, n);

    return bits == 0 ? 1 : bits;
}

/** Fills the sources, and the destination with values that inactive lanes must keep. */
static void fill(struct alu_fixture *f, struct rng *rng, alu_operand_maker *maker) {
    for (size_t n = 0; n < f->source.operand_count; n++) {
        const enum ptx_type type = f->registers[n].type;
        const bool pairs = type == PTX_F16X2 || type == PTX_BF16X2;

        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            const size_t bits = operand_bits(f, n);
            const size_t source = n - (n > 0);
            const uint64_t value = bits == 1 ? rng_below(rng, 2)
                                   : pairs   ? maker(rng, source, 16) | maker(rng, source, 16) << 16
                                             : maker(rng, source, bits);
            alu_fixture_set_lane(f, n, lane, value);
        }
    }
}

/** Runs once and compares; @p alias: the source that is also the destination, 0: none. */
static bool check_once(struct alu_fixture *f, alu_reference *reference, const void *context,
                       size_t alias) {
    uint64_t want[SIMT_LANES];

    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        uint64_t source[4] = {0};

        for (size_t n = 1; n < f->source.operand_count && n <= COUNT(source); n++) {
            source[n - 1] = alu_fixture_lane(f, n, lane);
        }
        want[lane] = f->warp.mask >> lane & 1 ? reference(context, source)
                                              : alu_fixture_lane(f, alias, lane);
    }
    if (f->registers[0].type != PTX_PRED) {
        f->instruction.dst[0] = (uint32_t)(alias * 2 * sizeof(union simt_row));
    }
    f->instruction.run(&f->warp, &f->instruction);
    for (size_t lane = 0; lane < SIMT_LANES; lane++) {
        const uint64_t got = alu_fixture_lane(f, alias, lane);

        if (got != want[lane]) {
            TEST_FAIL("%s, mask %08" PRIx32 ", destination = operand %zu, lane %zu: want %" PRIx64
                      ", got %" PRIx64,
                      f->text, f->warp.mask, alias, lane, want[lane], got);
            return false;
        }
    }
    return true;
}

static bool may_alias(const struct alu_fixture *f, size_t n) {
    return n == 0 || (f->registers[0].type != PTX_PRED && f->registers[n].type != PTX_PRED &&
                      register_bits(f, 0) == register_bits(f, n));
}

bool alu_check(const char *opcode, size_t sources, alu_operand_maker *maker,
               alu_reference *reference, const void *context) {
    struct alu_fixture f;
    struct rng rng = rng_create(20);

    alu_fixture_create(&f, opcode, sources);
    if (!alu_fixture_decode(&f)) {
        TEST_FAIL("%s is not decoded", opcode);
        return false;
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        const uint32_t masks[] = {UINT32_MAX, (uint32_t)rng_u64(&rng), UINT32_MAX,
                                  (uint32_t)rng_u64(&rng), 0};

        alu_fixture_mask(&f, masks[round % COUNT(masks)]);
        for (size_t alias = 0; alias <= sources; alias++) {
            fill(&f, &rng, maker);
            if (may_alias(&f, alias) && !check_once(&f, reference, context, alias)) {
                return false;
            }
        }
    }
    return true;
}

void alu_check_refused(const char *const opcodes[], size_t count, size_t sources) {
    struct alu_fixture f;

    for (size_t n = 0; n < count; n++) {
        alu_fixture_create(&f, opcodes[n], sources);
        if (alu_fixture_decode(&f)) {
            TEST_FAIL("%s is accepted", opcodes[n]);
        }
    }
}

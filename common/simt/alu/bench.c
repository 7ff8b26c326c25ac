/**
 * @file bench.c
 * @brief How many warp instructions a second the handlers do, one thread, rows in cache.
 *
 *     bazel run -c opt //common/simt/alu:bench
 *
 * Each line is one opcode with operands near 1 (or small integers), called through
 * the instruction as the scheduler does, with all lanes active and with a partial
 * mask.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/simt/alu/fixture.h"

enum { REPEATS = 2000000, TRIALS = 5 };

struct subject {
    const char *opcode;
    size_t sources;
};

static const struct subject subjects[] = {
    {"add.s32", 2},        {"mad.lo.s32", 3},      {"mul.wide.s32", 2},     {"shl.b32", 2},
    {"div.s32", 2},        {"rem.u32", 2},         {"lop3.b32", 4},         {"bfe.u32", 3},
    {"prmt.b32", 3},       {"shf.l.wrap.b32", 3},  {"dp4a.s32.s32", 3},     {"popc.b32", 1},
    {"add.s64", 2},        {"mul.lo.u64", 2},      {"div.u64", 2},          {"add.cc.u32", 2},
    {"add.f32", 2},        {"fma.rn.f32", 3},      {"fma.rn.ftz.f32", 3},   {"add.rz.f32", 2},
    {"div.rn.f32", 2},     {"sqrt.rn.f32", 1},     {"min.f32", 2},          {"fma.rn.f64", 3},
    {"ex2.approx.f32", 1}, {"lg2.approx.f32", 1},  {"sin.approx.f32", 1},   {"tanh.approx.f32", 1},
    {"add.f16x2", 2},      {"fma.rn.f16x2", 3},    {"fma.rn.bf16x2", 3},    {"setp.lt.s32", 2},
    {"setp.lt.f32", 2},    {"setp.lt.and.s64", 3}, {"selp.b32", 3},         {"mov.u32", 1},
    {"cvt.s64.s32", 1},    {"cvt.u16.u32", 1},     {"cvt.rn.f32.s32", 1},   {"cvt.rzi.s32.f32", 1},
    {"cvt.rn.f16.f32", 1}, {"cvt.f32.f16", 1},     {"cvt.rn.f16x2.f32", 2}, {"cvt.f64.f32", 1},
    {"cvt.rz.f32.f64", 1}, {"cvt.sat.u8.s32", 1}};

static double now(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/** @return millions of calls a second: the best of a few trials, the machine being shared. */
static double measure(struct alu_fixture *f) {
    double best = 0;

    for (int trial = 0; trial < TRIALS; trial++) {
        const double start = now();
        for (size_t n = 0; n < REPEATS / TRIALS; n++) {
            f->instruction.run(&f->warp, &f->instruction);
            __asm__ volatile("" ::: "memory");
        }
        const double rate = REPEATS / TRIALS / (now() - start) / 1e6;
        best = rate > best ? rate : best;
    }
    return best;
}

static uint64_t operand(const struct alu_fixture *f, size_t n, size_t lane) {
    const enum ptx_type type = f->registers[n].type;
    const double wide = 1 + (double)lane / 64;
    const float single = (float)wide;
    uint64_t word = 0;

    if (type == PTX_F64) {
        memcpy(&word, &wide, 8);
        return word;
    }
    if (type == PTX_F32) {
        memcpy(&word, &single, 4);
        return word;
    }
    return type >= PTX_F16 && type <= PTX_BF16X2 ? 0x3c003c00 + lane * 0x00010001
                                                 : 3 + 5 * lane + n;
}

int main(void) {
    static struct alu_fixture f;

    printf("%-20s %10s %10s\n", "opcode", "full M/s", "partial");
    for (size_t s = 0; s < COUNT(subjects); s++) {
        alu_fixture_create(&f, subjects[s].opcode, subjects[s].sources);
        if (!alu_fixture_decode(&f)) {
            fprintf(stderr, "%s is not decoded\n", subjects[s].opcode);
            return 1;
        }
        for (size_t n = 1; n <= subjects[s].sources; n++) {
            for (size_t lane = 0; lane < SIMT_LANES; lane++) {
                alu_fixture_set_lane(&f, n, lane, operand(&f, n, lane));
            }
        }
        const double full = measure(&f);
        alu_fixture_mask(&f, 0x00ffff0f);
        printf("%-20s %10.0f %10.0f\n", subjects[s].opcode, full, measure(&f));
    }
    return 0;
}

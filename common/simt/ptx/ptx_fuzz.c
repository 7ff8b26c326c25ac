/* Fuzzes the PTX parser: an accepted module is consistent, and a refused one names a line. */
#include "common/simt/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/testing/check.h"
#include "common/testing/fuzz.h"

/* The first function whose body is refused. */
static enum status read_bodies(struct ptx_module *module, struct error *error) {
    for (size_t n = 0; n < module->function_count; n++) {
        TRY(ptx_read_body(module, &module->functions[n], error));
    }
    return STATUS_OK;
}

/* What can be read at once, and nothing else, can be read late; what is refused names a line. */
static void read_late(const char *text, size_t size, bool good) {
    struct ptx_module *module;
    struct error error = {0};
    enum status status = ptx_parse_late(&module, text, size, &error);
    status = status == STATUS_OK ? read_bodies(module, &error) : status;
    if (good != (status == STATUS_OK)) {
        abort();
    }
    if (!good && strncmp(error.message, "PTX line ", 9) != 0) {
        abort();
    }
    if (status == STATUS_OK && ptx_check(module) != NULL) {
        abort();
    }
    ptx_free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ptx_module *module;
    struct error error = {0};
    enum status status = ptx_parse(&module, (const char *)data, size, &error);
    read_late((const char *)data, size, status == STATUS_OK);
    if (status != STATUS_OK) {
        if (module != NULL || strncmp(error.message, "PTX line ", 9) != 0) {
            abort();
        }
        return 0;
    }
    if (ptx_check(module) != NULL) {
        abort();
    }
    ptx_free(module);
    return 0;
}

#define HEADER ".version 9.0\n.target sm_75\n.address_size 64\n"

static const char *const seeds[] = {
    HEADER ".global .align 8 .u64 a[3] = {7, generic(b)+8, f};\n"
           ".const .align 4 .b8 c[2][4] = {{1, 0x2}, {-3}};\n"
           ".global .f32 d = 0f3F800000;\n.extern .shared .align 16 .b8 e[];\n"
           ".global .u8 x[9] = {9, 0XFF(generic(s)), 0xFF00(generic(s)), 0xFF0000(generic(s)),\n"
           "0xFF000000(generic(s)), 0xFF00000000(generic(s)), 0xFF0000000000(generic(s)),\n"
           "0xFF000000000000(generic(s)), 0xFF00000000000000(generic(s))};\n",
    HEADER ".func (.param .b32 r) f(.param .b32 q);\n"
           ".visible .entry k(.param .u64 p, .param .align 8 .b8 s[24]) .maxntid 256, 1, 1\n"
           "{ .reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %rd<4>;\n"
           ".local .align 8 .b8 depot[16];\n.loc 1 2 3\n"
           "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u64 %rd2, depot;\n"
           "$L1: @!%p1 bra $L2; setp.lt.and.s32 %p1|%p2, %r1, 010, !%p2;\n"
           ".loc 2 5 1, function_name $S, inlined_at 1 2 3\n"
           "ld.global.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16]; bra $L1;\n$L2:\n"
           "{ .param .b32 param0; st.param.b32 [param0+0], %r1; .param .b32 retval0;\n"
           "call.uni (retval0), f, (param0); ld.param.b32 %r2, [retval0+0]; }\n"
           "ret; }\n.file 1 \"k.cu\"\n.section .debug_str { $S: .b8 1,0 }\n",
    HEADER ".entry k { .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .pred p;\n"
           "t: .branchtargets A, B; brx.idx %r1, t; A: { .reg .b32 x<2>; A: mov.b32 x1, 0b1;\n"
           "@p bra A; } B: proto: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
           "call (%r1), %rd1, (%r2, 5), proto; /* c */ vadd.u32 %r1, %r2.b0, %r3.h1;\n"
           "cp.async.bulk.tensor.2d [%rd1], [%rd2, {%r1, 7}], [%rd3]; mov.u32 %r1, WARP_SZ;\n"
           "fma.rn.f64 %rd1, 0d3FF0000000000000, -1.5e3, ~0x1U; .pragma \"nounroll\"; }\n"
           ".weak .func g { ret; }\n.alias h, g;\n",
};

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    if (index >= sizeof seeds / sizeof *seeds) {
        return false;
    }
    *size = strlen(seeds[index]);
    *seed = malloc(*size);
    if (*seed == NULL) {
        abort();
    }
    memcpy(*seed, seeds[index], *size);
    return true;
}

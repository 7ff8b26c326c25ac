#include "common/simt/random/random_kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/random/random_expression.h"

/* Types of a kernel: 32-bit integers always, others as the seed has it. */
static random_types choose_types(struct random_writer *writer) {
    static const struct {
        const char *letters;
        unsigned percent;
    } groups[] = {{"aA", 40}, {"hH", 40}, {"lL", 70}, {"f", 65}, {"d", 40}};
    random_types types = random_type_set('i') | random_type_set('I');
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const bool chosen = random_chance(writer, groups[i].percent);
        for (const char *at = groups[i].letters; chosen && *at != '\0'; at++) {
            types |= random_type_set(*at);
        }
    }
    /* Every fifth kernel, so that files can be made of kernels with half alone. */
    if (writer->seed % 5 == 4) {
        types |= random_type_set('x') | random_type_set('f');
        types |= random_chance(writer, 50) ? random_type_set('y') : 0;
    }
    return types;
}

static void add_variable(struct random_writer *writer, char type, unsigned number) {
    static const char *const stems[RANDOM_TYPE_COUNT] = {"s8",  "u8",  "s16", "u16", "s32", "u32",
                                                         "s64", "u64", "f32", "f64", "f16", "bf16"};
    struct random_variable *added = &writer->variables[writer->variable_count++];
    const char *at = strchr(RANDOM_TYPES, type);
    added->type = type;
    (void)snprintf(added->name, sizeof added->name, "%s_%u", stems[at - RANDOM_TYPES], number);
}

/* The expression that gives variable `index` its first value. */
static void first_value(struct random_writer *writer, size_t index) {
    static const char *const texts[RANDOM_TYPE_COUNT] = {
        "(s8)WORD",
        "(u8)WORD",
        "(s16)WORD",
        "(u16)WORD",
        "(s32)WORD",
        "WORD",
        "(s64)((u64)WORD << 32 | thread)",
        "(u64)WORD * 0x9e3779b97f4a7c15ull",
        "spread(WORD, -100.0f, 200.0f)",
        "(double)(s32)WORD * 0x1p-20",
        "__float2half_rn(spread(WORD, -4.0f, 8.0f))",
        "__float2bfloat16_rn(spread(WORD, -4.0f, 8.0f))",
    };
    const struct random_variable *variable = &writer->variables[index];
    const char *text = texts[strchr(RANDOM_TYPES, variable->type) - RANDOM_TYPES];
    const char *word = strstr(text, "WORD");
    random_text_print(&writer->text, "    %s %s = %.*sin[(thread * 7u + %uu) & 1023u]%s;\n",
                      random_type_name(variable->type), variable->name, (int)(word - text), text,
                      random_below(writer, 1024), word + 4);
}

/* Declares `each` variables of every type. */
static void kernel_variables(struct random_writer *writer, unsigned each) {
    for (const char *type = RANDOM_TYPES; *type != '\0'; type++) {
        const bool wide = strchr("iIlLfd", *type) != NULL;
        for (unsigned i = 0; i < (wide ? each : 1) && (writer->types & random_type_set(*type)) != 0;
             i++) {
            add_variable(writer, *type, i);
        }
    }
    for (size_t i = 0; i < writer->variable_count; i++) {
        first_value(writer, i);
    }
}

static void constant_table(struct random_writer *writer) {
    random_text_print(&writer->text, "%s const u32 table_%" PRIu64 "[16] = {",
                      random_chance(writer, 50) ? "__constant__" : "static __device__",
                      writer->seed);
    for (unsigned i = 0; i < 16; i++) {
        random_text_print(&writer->text, "%s0x%xu", i > 0 ? ", " : "",
                          (unsigned)(rng_u64(&writer->rng) >> 32));
    }
    random_text_print(&writer->text, "};\n");
}

/* Parameters are variables; types without one get a constant. */
static void function_variables(struct random_writer *writer,
                               const struct random_signature *signature) {
    random_types seen = 0;
    writer->variable_count = 0;
    for (unsigned i = 0; i < RANDOM_PARAMETERS; i++) {
        add_variable(writer, signature->parameters[i], i);
        seen |= random_type_set(signature->parameters[i]);
        random_text_print(&writer->text, "%s %s, ", random_type_name(signature->parameters[i]),
                          writer->variables[i].name);
    }
    random_text_print(&writer->text, "const u32 *in, u32 *cells) {\n");
    for (const char *type = RANDOM_TYPES; *type != '\0'; type++) {
        if ((writer->types & ~seen & random_type_set(*type)) != 0) {
            add_variable(writer, *type, 9);
            random_text_print(&writer->text, "    %s %s = ", random_type_name(*type),
                              writer->variables[writer->variable_count - 1].name);
            random_constant(writer, *type);
            random_text_print(&writer->text, ";\n");
        }
    }
}

/* Calls functions of lower numbers only: no recursion. */
static void device_function(struct random_writer *writer, unsigned number) {
    const struct random_signature signature =
        random_signature_of(writer->seed, number, writer->types);
    unsigned next = 0;
    const struct random_place place = {
        .depth = 1, .returns = signature.result, .functions = number};
    random_text_print(&writer->text, "static __device__ %s %s f_%" PRIu64 "_%u(",
                      random_chance(writer, 60) ? "__noinline__" : "__forceinline__",
                      random_type_name(signature.result), writer->seed, number);
    function_variables(writer, &signature);
    random_statements(writer, place, 2 + random_below(writer, 2), &next);
    random_text_print(&writer->text, "    return ");
    random_expression(writer, signature.result, 2);
    random_text_print(&writer->text, ";\n}\n");
    writer->variable_count = 0;
}

/* Text of a variable's bits as an integer. */
static void folded(struct random_writer *writer, const struct random_variable *variable) {
    const char *folds[] = {"bits_f32", "bits_f64", "bits_f16", "bits_bf16"};
    const char *at = strchr("fdxy", variable->type);
    random_text_print(&writer->text, "%s(%s)", at != NULL ? folds[at - "fdxy"] : "(u64)",
                      variable->name);
}

/* Folds every variable into the section's result. */
static void checkpoint(struct random_writer *writer, unsigned section) {
    random_text_print(&writer->text, "    hash = %uull;\n", section + 1);
    for (size_t i = 0; i < writer->variable_count; i++) {
        random_text_print(&writer->text, "    hash = mix(hash, ");
        folded(writer, &writer->variables[i]);
        random_text_print(&writer->text, ");\n");
    }
    random_text_print(&writer->text, "    out[%uu + thread] = hash;\n",
                      section * RANDOM_ALL_THREADS);
}

static void approximate(struct random_writer *writer, struct random_kernel *kernel) {
    const size_t slot = kernel->approximate_count++;
    const struct random_approximate *chosen =
        &random_approximates[random_below(writer, (unsigned)random_approximate_count)];
    kernel->approximates[slot] = chosen;
    random_text_print(&writer->text, "    out[%uu + thread] = __float_as_uint(",
                      (unsigned)(RANDOM_SECTIONS + slot) * RANDOM_ALL_THREADS);
    random_fill(writer, chosen->text, 1);
    random_text_print(&writer->text, ");\n");
}

static void kernel_body(struct random_writer *writer, struct random_kernel *kernel,
                        unsigned functions) {
    unsigned next = 0;
    random_text_print(&writer->text,
                      "    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;\n"
                      "    u64 hash;\n"
                      "    u32 cells[8] __attribute__((aligned(8)));\n");
    kernel_variables(writer, 2);
    random_text_print(&writer->text,
                      "    for (u32 i = 0u; i < 8u; i++) cells[i] = in[thread + i];\n");
    for (unsigned section = 0; section < RANDOM_SECTIONS; section++) {
        random_statements(writer, random_place_kernel(functions), 1 + random_below(writer, 3),
                          &next);
        checkpoint(writer, section);
    }
    for (unsigned i = random_chance(writer, 50) ? RANDOM_APPROXIMATES : 0; i > 0; i--) {
        approximate(writer, kernel);
    }
}

enum status random_kernel_create(uint64_t seed, struct random_kernel *kernel) {
    struct random_writer writer = {.rng = rng_create(seed), .seed = seed};
    const unsigned functions = random_below(&writer, 3);
    *kernel = (struct random_kernel){.half = seed % 5 == 4};
    writer.types = choose_types(&writer);
    constant_table(&writer);
    for (unsigned i = 0; i < functions; i++) {
        device_function(&writer, i);
    }
    writer.mask = "0xffffffffu";
    random_text_print(&writer.text,
                      "extern \"C\" __global__ void k_%" PRIu64 "(u64 *out, const u32 *in) {\n",
                      seed);
    kernel_body(&writer, kernel, functions);
    random_text_print(&writer.text, "}\n\n");
    if (writer.text.failed) {
        free(writer.text.data);
        return STATUS_OUT_OF_MEMORY;
    }
    kernel->text = writer.text.data;
    kernel->size = writer.text.size;
    return STATUS_OK;
}

void random_kernel_free(struct random_kernel *kernel) {
    free(kernel->text);
    *kernel = (struct random_kernel){0};
}

void random_kernel_input(uint32_t *in) {
    static const uint32_t special[] = {
        0,          1,          2,          3,          31,         32,         0x7fffffff,
        0x80000000, 0xffffffff, 0xfffffffe, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000,
        0xbf800000, 0x00800000, 0x00000001, 0x807fffff, 0x7f7fffff, 0x4b000000, 0x7ff00000,
        0x0000ffff, 0x00010000, 0x3c003c00, 0x7bff0400, 0xfc008001};
    struct rng rng = rng_create(0x5eed);
    for (size_t i = 0; i < RANDOM_IN_WORDS; i++) {
        const uint64_t bits = rng_u64(&rng);
        const uint64_t kind = rng_below(&rng, 4);
        const uint64_t index = rng_below(&rng, sizeof special / sizeof special[0]);
        in[i] = kind == 0   ? special[index]
                : kind == 1 ? (uint32_t)bits >> (bits >> 59)
                            : (uint32_t)bits;
    }
}

static const uint64_t fnv_offset = 0xcbf29ce484222325, fnv_prime = 0x100000001b3;

uint64_t random_kernel_hash(const uint64_t *words, size_t count) {
    uint64_t hash = fnv_offset;
    for (size_t i = 0; i < count; i++) {
        for (unsigned shift = 0; shift < 64; shift += 8) {
            hash = (hash ^ (words[i] >> shift & 0xff)) * fnv_prime;
        }
    }
    return hash;
}

uint64_t random_kernel_text_hash(const char *text, size_t size) {
    uint64_t hash = fnv_offset;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)text[i]) * fnv_prime;
    }
    return hash;
}

/*
 * Bounds are the sum of what NVIDIA states for the function (CUDA C++ Programming Guide,
 * mathematical functions; PTX ISA, .approx instructions) and the same again for the emulator,
 * which must keep the same bound. Where all instructions of a function are exact, both give the
 * same bits: 0 ulps.
 */
const struct random_approximate random_approximates[] = {
    {"ex2.approx", "approximate_ex2(spread($I, -140.0f, 280.0f))", 4, 0},
    {"ex2.approx.ftz", "approximate_ex2_ftz(spread($I, -30.0f, 60.0f))", 4, 0},
    {"lg2.approx near 1", "approximate_lg2(spread($I, 0.5f, 1.5f))", 0, 0x1p-21},
    {"lg2.approx", "approximate_lg2(spread($I, 2.0f, 1e6f))", 4, 0},
    {"sin.approx", "approximate_sin(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"cos.approx", "approximate_cos(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"tanh.approx", "approximate_tanh(spread($I, -6.0f, 12.0f))", 0x1p13, 0},
    {"rcp.approx", "approximate_rcp(spread($I, 0.01f, 1e4f))", 2, 0},
    {"sqrt.approx", "approximate_sqrt(spread($I, 0.0f, 1e6f))", 4, 0},
    {"rsqrt.approx", "approximate_rsqrt(spread($I, 1e-3f, 1e6f))", 4, 0},
    {"__expf", "__expf(spread($I, -20.0f, 40.0f))", 4, 0},
    {"__exp10f", "__exp10f(spread($I, -8.0f, 16.0f))", 4, 0},
    {"__logf", "__logf(spread($I, 2.0f, 1e4f))", 6, 0},
    {"__log10f", "__log10f(spread($I, 2.0f, 1e4f))", 6, 0},
    {"__sinf", "__sinf(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"__cosf", "__cosf(spread($I, -3.14f, 6.28f))", 0, 0x1p-19},
    {"__fdividef", "__fdividef(spread($I, -50.0f, 100.0f), spread($I, 0.5f, 100.0f))", 4, 0},
    {"rsqrtf", "rsqrtf(spread($I, 0.001f, 100.0f))", 4, 0},
    {"expf", "expf(spread($I, -80.0f, 160.0f))", 4, 0},
    {"exp2f", "exp2f(spread($I, -100.0f, 200.0f))", 4, 0},
    {"exp10f", "exp10f(spread($I, -20.0f, 40.0f))", 4, 0},
    {"expm1f", "expm1f(spread($I, -3.0f, 6.0f))", 4, 0},
    {"logf", "logf(spread($I, 0.0f, 100.0f))", 0, 0},
    {"log1pf", "log1pf(spread($I, -0.9f, 20.0f))", 0, 0},
    {"sinf", "sinf(spread($I, -20.0f, 40.0f))", 0, 0},
    {"cosf", "cosf(spread($I, -300000.0f, 600000.0f))", 0, 0},
    {"atanf", "atanf(spread($I, -3.0f, 6.0f))", 4, 0},
    {"tanhf", "tanhf(spread($I, -4.0f, 8.0f))", 4, 0},
    {"erff", "erff(spread($I, -3.0f, 6.0f))", 4, 0},
    {"cbrtf", "cbrtf(spread($I, -100.0f, 200.0f))", 2, 0},
    {"normcdff", "normcdff(spread($I, -3.0f, 6.0f))", 10, 0},
    {"powf", "powf(spread($I, 0.1f, 4.0f), spread($I, -3.0f, 6.0f))", 16, 0},
};
const size_t random_approximate_count = sizeof random_approximates / sizeof random_approximates[0];

#include "common/simt/random/random_expression.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

random_types random_type_set(char letter) {
    const char *at = letter != '\0' ? strchr(RANDOM_TYPES, letter) : NULL;
    return at != NULL ? (random_types)1 << (at - RANDOM_TYPES) : 0;
}

const char *random_type_name(char letter) {
    static const char *const names[RANDOM_TYPE_COUNT] = {
        "s8",  "u8",  "s16",   "u16",    "s32",    "u32",
        "s64", "u64", "float", "double", "__half", "__nv_bfloat16"};
    const char *at = strchr(RANDOM_TYPES, letter);
    return names[at - RANDOM_TYPES];
}

unsigned random_below(struct random_writer *writer, unsigned bound) {
    return (unsigned)rng_below(&writer->rng, bound);
}

bool random_chance(struct random_writer *writer, unsigned percent) {
    return random_below(writer, 100) < percent;
}

char random_type(struct random_writer *writer) {
    char letter;
    do {
        letter = RANDOM_TYPES[random_below(writer, RANDOM_TYPE_COUNT)];
    } while ((writer->types & random_type_set(letter)) == 0);
    return letter;
}

/* Bits of an integer constant: often one at an edge. */
static uint64_t constant_bits(struct random_writer *writer) {
    static const uint64_t edges[] = {0,          1,          2,          3,          7,
                                     31,         32,         127,        128,        255,
                                     32767,      32768,      65535,      0x7fffffff, 0x80000000,
                                     0xffffffff, 0xfffffffe, 1ull << 32, 1ull << 63, ~0ull};
    uint64_t bits = rng_u64(&writer->rng);
    if (random_chance(writer, 40)) {
        return edges[random_below(writer, COUNT(edges))];
    }
    return bits >> random_below(writer, 64);
}

static void integer_constant(struct random_writer *writer, char type) {
    const uint64_t bits = constant_bits(writer);
    if (strchr("lL", type) != NULL) {
        random_text_print(&writer->text, "(%s)0x%" PRIx64 "ull", random_type_name(type), bits);
    } else {
        random_text_print(&writer->text, "(%s)0x%" PRIx32 "u", random_type_name(type),
                          (uint32_t)bits);
    }
}

static void float_constant(struct random_writer *writer, char type) {
    static const char *const values[] = {
        "0.0",          "-0.0",           "1.0",       "-1.0",      "0.5",
        "1.5",          "-2.5",           "3.0",       "0.1",       "-1e-3",
        "1e5",          "-7e9",           "0x1p-126",  "-0x1p-140", "0x1p-149",
        "0x1p-24",      "0x1.fffffep127", "0x1p-14",   "0x1p-30",   "65504.0",
        "0x1p31",       "0x1p63",         "0x1p-1000", "1e300",     "2147483648.5",
        "-0x1.000002p0"};
    const unsigned count = COUNT(values);
    const char *value = values[random_below(writer, count)];
    const char *at = strchr("fdxy", type);
    /* Beyond the range of float a literal is an error. */
    if (type != 'd' && (strcmp(value, "1e300") == 0 || strcmp(value, "0x1p-1000") == 0)) {
        value = "1.25";
    }
    switch (at - "fdxy") {
    case 0:
        random_text_print(&writer->text, "%sf", value);
        break;
    case 1:
        random_text_print(&writer->text, "%s", value);
        break;
    case 2:
        random_text_print(&writer->text, "__float2half_rn(%sf)", value);
        break;
    default:
        random_text_print(&writer->text, "__float2bfloat16_rn(%sf)", value);
    }
}

void random_constant(struct random_writer *writer, char type) {
    if (strchr("fdxy", type) != NULL) {
        float_constant(writer, type);
    } else {
        integer_constant(writer, type);
    }
}

/* A variable of the type when there is one, else a constant. */
static void leaf(struct random_writer *writer, char type) {
    const struct random_variable *fitting[RANDOM_VARIABLES];
    unsigned count = 0;
    for (size_t i = 0; i < writer->variable_count; i++) {
        if (writer->variables[i].type == type) {
            fitting[count++] = &writer->variables[i];
        }
    }
    if (count == 0 || random_chance(writer, 12)) {
        random_constant(writer, type);
    } else {
        const char *name = fitting[random_below(writer, count)]->name;
        random_text_print(&writer->text, "%s", name);
    }
}

bool random_fits(const struct random_writer *writer, const char *template) {
    for (const char *at = strchr(template, '$'); at != NULL; at = strchr(at + 2, '$')) {
        const random_types needed = random_type_set(at[1]);
        if ((needed & ~writer->types) != 0 || (at[1] == 'M' && writer->mask == NULL)) {
            return false;
        }
    }
    return true;
}

/* One of the templates for the type that fit, each as likely as the others; NULL: none. */
static const char *choose(struct random_writer *writer, char type) {
    const char *chosen = NULL;
    unsigned seen = 0;
    for (size_t i = 0; i < random_template_count; i++) {
        const struct random_template *entry = &random_templates[i];
        if (entry->type == type && random_fits(writer, entry->text) &&
            random_below(writer, ++seen) == 0) {
            chosen = entry->text;
        }
    }
    return chosen;
}

void random_expression(struct random_writer *writer, char type, unsigned depth) {
    if (type == '?') {
        const char *text = depth > 0 ? choose(writer, '?') : "($I > $I)";
        random_fill(writer, text, depth > 0 ? depth - 1 : 0);
        return;
    }
    const char *text = depth > 0 && random_chance(writer, 85) ? choose(writer, type) : NULL;
    if (text == NULL) {
        leaf(writer, type);
    } else {
        random_fill(writer, text, depth - 1);
    }
}

static void shift_count(struct random_writer *writer, unsigned bound, unsigned depth) {
    if (random_chance(writer, 50)) {
        random_text_print(&writer->text, "%u", random_below(writer, bound));
    } else {
        random_text_print(&writer->text, "(");
        random_expression(writer, 'I', depth);
        random_text_print(&writer->text, " & %uu)", bound - 1);
    }
}

/* Writes the expansion of `$` and the character. */
static void fill_part(struct random_writer *writer, char part, unsigned depth) {
    static const char *const roundings[] = {"rn", "rz", "ru", "rd"};
    switch (part) {
    case '4':
    case '5':
    case '6':
        shift_count(writer, 1u << (part - '0'), depth);
        break;
    case 'k':
        random_text_print(&writer->text, "0x%xu", (unsigned)constant_bits(writer));
        break;
    case 'n':
        random_text_print(&writer->text, "%uu", 1 + random_below(writer, 1000000));
        break;
    case 'r':
        random_text_print(&writer->text, "%s", roundings[random_below(writer, 4)]);
        break;
    case 'M':
        random_text_print(&writer->text, "%s", writer->mask);
        break;
    case 'N':
        random_text_print(&writer->text, "%" PRIu64, writer->seed);
        break;
    default:
        random_expression(writer, part, depth);
    }
}

void random_fill(struct random_writer *writer, const char *template, unsigned depth) {
    while (*template != '\0') {
        const char *part = strchr(template, '$');
        if (part == NULL) {
            random_text_add(&writer->text, template, strlen(template));
            return;
        }
        random_text_add(&writer->text, template, (size_t)(part - template));
        fill_part(writer, part[1], depth);
        template = part + 2;
    }
}

/* Room for `more` bytes and a NUL. */
static bool reserve(struct random_text *text, size_t more) {
    if (text->failed || text->size + more < text->capacity) {
        return !text->failed;
    }
    size_t capacity = 2 * (text->size + more) + 256;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void random_text_add(struct random_text *text, const char *bytes, size_t size) {
    if (reserve(text, size)) {
        memcpy(text->data + text->size, bytes, size);
        text->size += size;
        text->data[text->size] = '\0';
    }
}

void random_text_print(struct random_text *text, const char *format, ...) {
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        text->failed = true;
        return;
    }
    random_text_add(text, line, (size_t)length);
}

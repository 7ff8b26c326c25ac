/* Functions that a kernel calls and the GPU's system provides: printf, assert, malloc, free. */
#include <stdio.h>
#include <string.h>

#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/access/access.h"
#include "common/simt/memory/access/harmless.h"
#include "common/simt/memory/undefined.h"

/* One lane's value of a call's argument: its first 8 bytes. */
static uint64_t argument_of(const struct simt_fragment *fragment, const struct simt_call *call,
                            uint32_t number, uint32_t lane) {
    const struct simt_frame *frame = fragment->frame;
    const struct simt_parameter *parameter = &frame->code->parameters[call->arguments[number]];
    const uint32_t *low = (const uint32_t *)(void *)(frame->rows + parameter->offset);
    const uint32_t *high = low + SIMT_LANES; /* the row behind it */
    return parameter->words > 1 ? low[lane] | (uint64_t)high[lane] << 32 : low[lane];
}

static void return_value(const struct simt_fragment *fragment, const struct simt_call *call,
                         uint32_t lane, uint64_t value) {
    if (call->result_count > 0) {
        const struct simt_frame *frame = fragment->frame;
        const struct simt_parameter *result = &frame->code->parameters[call->results[0]];
        uint32_t *low = (uint32_t *)(void *)(frame->rows + result->offset);
        low[lane] = (uint32_t)value;
        if (result->words > 1) {
            low[SIMT_LANES + lane] = (uint32_t)(value >> 32);
        }
    }
}

/* Where a kernel's generic address of device memory or of its own local memory lies; NULL: wild. */
static const char *readable(const struct simt_warp_run *w, uint32_t lane, uint64_t address,
                            size_t *limit) {
    const struct simt_block *block = w->warp.block;
    if (address >= SIMT_LOCAL_WINDOW && address - SIMT_LOCAL_WINDOW < block->local_bytes) {
        size_t offset = (size_t)(address - SIMT_LOCAL_WINDOW);
        size_t thread = (size_t)w->warp.index * SIMT_LANES + lane;
        *limit = block->local_bytes - offset;
        return (const char *)block->local + thread * block->local_bytes + offset;
    }
    struct simt_allocation allocation;
    if (!simt_memory_find(block->run->memory, address, &allocation) || allocation.freed) {
        return NULL;
    }
    *limit = allocation.bytes - (size_t)(address - allocation.address);
    return simt_memory_host(block->run->memory, address);
}

static const char *string_at(const struct simt_warp_run *w, uint32_t lane, uint64_t address) {
    size_t limit = 0;
    const char *text = readable(w, lane, address, &limit);
    return text != NULL && memchr(text, '\0', limit) != NULL ? text : "(unreadable)";
}

/* Text that grows; a line longer than it is cut, as the GPU's printf buffer does. */
struct text {
    char bytes[4096];
    size_t used;
};

static void append(struct text *text, const char *bytes, size_t size) {
    size_t room = sizeof text->bytes - 1 - text->used;
    size = size < room ? size : room;
    memcpy(text->bytes + text->used, bytes, size);
    text->used += size;
    text->bytes[text->used] = '\0';
}

enum { SPEC_SIZE = 32 };

/* Reads a conversion after '%': flags, width, precision, length. @return its last character */
static char read_conversion(const char **at, char spec[SPEC_SIZE], bool *is_long) {
    size_t used = 0;
    *is_long = false;
    spec[used++] = '%';
    while (**at != '\0' && strchr("-+ #0123456789.hlLjzt", **at) != NULL && used < SPEC_SIZE - 4) {
        if (strchr("hlLjzt", **at) == NULL) {
            spec[used++] = **at;
        } else {
            *is_long = *is_long || **at != 'h';
        }
        (*at)++;
    }
    spec[used] = '\0';
    char conversion = **at;
    if (conversion != '\0') {
        (*at)++;
    }
    return conversion;
}

static void append_integer(struct text *text, char *spec, char conversion, bool is_long,
                           uint64_t bits) {
    char buffer[512];
    size_t used = strlen(spec);
    bool is_signed = conversion == 'd' || conversion == 'i';
    int64_t value = is_long ? (int64_t)bits : is_signed ? (int32_t)bits : (int64_t)(uint32_t)bits;
    if (conversion == 'c') {
        append(text, &(char){(char)bits}, 1);
        return;
    }
    snprintf(spec + used, SPEC_SIZE - used, "ll%c", conversion);
    int size = snprintf(buffer, sizeof buffer, spec, (long long)value);
    append(text, buffer, size < (int)sizeof buffer ? (size_t)size : sizeof buffer - 1);
}

/* One conversion with the argument at `values`. */
static void append_value(struct text *text, const struct simt_warp_run *w, uint32_t lane,
                         char *spec, char conversion, bool is_long, const char *values) {
    char buffer[512];
    uint64_t bits = 0;
    size_t used = strlen(spec);
    bool wide = is_long || strchr("aAeEfFgGps", conversion) != NULL;
    memcpy(&bits, values, wide ? 8 : 4);
    if (strchr("diouxXc", conversion) != NULL) {
        append_integer(text, spec, conversion, is_long, bits);
        return;
    }
    int size = 0;
    if (conversion == 's') {
        snprintf(spec + used, SPEC_SIZE - used, "s");
        size = snprintf(buffer, sizeof buffer, spec, string_at(w, lane, bits));
    } else if (conversion == 'p') {
        size = snprintf(buffer, sizeof buffer, "0x%llx", (unsigned long long)bits);
    } else {
        double value;
        memcpy(&value, &bits, sizeof value);
        snprintf(spec + used, SPEC_SIZE - used, "%c", conversion);
        size = snprintf(buffer, sizeof buffer, spec, value);
    }
    append(text, buffer, size < (int)sizeof buffer ? (size_t)size : sizeof buffer - 1);
}

/* Of a value in the thread's local memory: whether it is one. Else the launch fails. */
static bool check_defined(struct simt_warp_run *w, const struct simt_instruction *instruction,
                          uint32_t lane, const char *value, size_t bytes) {
    const struct simt_block *block = w->warp.block;
    const char *local = (const char *)block->local;
    size_t place = (size_t)(value - local), words = bytes / 4;
    uint32_t number;
    bool is_local =
        block->shadow != NULL && value >= local && place / 4 < block->shadow->local_words;
    if (!is_local || block->undefined == NULL ||
        memchr(block->shadow->local + place / 4, 0, words) == NULL) {
        return true;
    }
    if (!simt_undefined_kept(&w->warp, PTX_LOCAL, place, (uint32_t)bytes, &number)) {
        return true; /* memory of a function that returned, filled in another way */
    }
    simt_undefined_fail(&w->warp, instruction, lane, simt_undefined_entry(block->undefined, number),
                        SIMT_USE_PRINT);
    return false;
}

/* printf of one lane: arguments lie in a buffer, each aligned to its size, doubles and 64 bits
 * to 8. @return characters; none is printed after a fault */
static int print_lane(struct simt_warp_run *w, const struct simt_instruction *instruction,
                      uint32_t lane, const char *format, const char *values, size_t limit) {
    struct text text = {.used = 0};
    size_t at = 0;
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        append(&text, format, plain);
        format += plain;
        if (*format == '\0') {
            break;
        }
        format++;
        if (*format == '%') {
            append(&text, "%", 1);
            format++;
            continue;
        }
        char spec[SPEC_SIZE];
        bool is_long;
        char conversion = read_conversion(&format, spec, &is_long);
        if (conversion == '\0' || strchr("diouxXcaAeEfFgGps", conversion) == NULL) {
            append(&text, "(?)", 3);
            continue;
        }
        size_t bytes = is_long || strchr("aAeEfFgGps", conversion) != NULL ? 8 : 4;
        at = (at + bytes - 1) / bytes * bytes;
        if (values == NULL || at + bytes > limit) {
            append(&text, "(missing)", 9);
            continue;
        }
        if (!check_defined(w, instruction, lane, values + at, bytes)) {
            return 0;
        }
        append_value(&text, w, lane, spec, conversion, is_long, values + at);
        at += bytes;
    }
    const struct simt_run *run = w->warp.block->run;
    if (run->harmless != NULL) { /* what was printed stays printed, so the race counts */
        simt_harmless_deny(run->harmless);
    } else if (run->witness == NULL) { /* else all of it was printed before */
        fwrite(text.bytes, 1, text.used, stdout);
    }
    return (int)text.used;
}

static void run_vprintf(struct simt_warp_run *w, const struct simt_fragment *fragment,
                        const struct simt_instruction *instruction, const struct simt_call *call) {
    for (uint32_t lane = 0; lane < SIMT_LANES && w->warp.fault == NULL; lane++) {
        if ((w->warp.mask >> lane & 1) == 0) {
            continue;
        }
        size_t limit = 0;
        uint64_t format = argument_of(fragment, call, 0, lane);
        uint64_t values = argument_of(fragment, call, 1, lane);
        const char *bytes = values != 0 ? readable(w, lane, values, &limit) : NULL;
        int count = print_lane(w, instruction, lane, string_at(w, lane, format), bytes, limit);
        return_value(fragment, call, lane, (uint32_t)count);
    }
    fflush(stdout);
}

/* __assertfail(message, file, line, function, size of a character). */
static void run_assert(struct simt_warp_run *w, const struct simt_fragment *fragment,
                       const struct simt_instruction *instruction, const struct simt_call *call) {
    uint32_t lane = (uint32_t)__builtin_ctz(w->warp.mask);
    simt_fail(&w->warp, instruction, lane, SIMT_FAULT_ASSERT, 0,
              "assertion `%s' failed (%s:%u, function %s)",
              string_at(w, lane, argument_of(fragment, call, 0, lane)),
              string_at(w, lane, argument_of(fragment, call, 1, lane)),
              (unsigned)argument_of(fragment, call, 2, lane),
              string_at(w, lane, argument_of(fragment, call, 3, lane)));
}

/* The heap of kernels: cudaLimitMallocHeapSize's default. */
enum { HEAP_BYTES = 8 << 20, HEAP_ALIGNMENT = 16 };
static const char heap_name[] = "malloc in a kernel";

/* NULL where the heap is full, as on a GPU. */
static void run_malloc(struct simt_warp_run *w, const struct simt_fragment *fragment,
                       const struct simt_call *call) {
    struct simt_memory *memory = w->warp.block->run->memory;
    size_t used = simt_memory_used_by(memory, heap_name);
    for (uint32_t rest = w->warp.mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t bytes = argument_of(fragment, call, 0, lane);
        uint64_t address = 0;
        if (bytes > 0 && bytes <= HEAP_BYTES && used <= HEAP_BYTES - bytes &&
            simt_memory_alloc(memory, (size_t)bytes, HEAP_ALIGNMENT, heap_name, &address) ==
                STATUS_OK) {
            used += (size_t)bytes;
        } else {
            address = 0;
        }
        return_value(fragment, call, lane, address);
    }
}

static void run_free(struct simt_warp_run *w, const struct simt_fragment *fragment,
                     const struct simt_instruction *instruction, const struct simt_call *call) {
    struct simt_memory *memory = w->warp.block->run->memory;
    for (uint32_t rest = w->warp.mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t address = argument_of(fragment, call, 0, lane);
        struct simt_allocation allocation;
        bool ours = address != 0 && simt_memory_find(memory, address, &allocation) &&
                    allocation.what == heap_name && allocation.address == address;
        if (address == 0) {
            continue;
        }
        if (!ours || simt_memory_release(memory, address) != STATUS_OK) {
            simt_fail(&w->warp, instruction, lane, SIMT_FAULT_FREED, address,
                      "frees 0x%llx, which malloc in a kernel has not returned, or which was freed "
                      "before",
                      (unsigned long long)address);
            return;
        }
    }
    simt_access_cache_reset(w->warp.block->cache); /* it may remember freed memory */
}

/* cudaGraphSetConditional(handle, value): the last lane's value stays. */
static void run_condition(struct simt_warp_run *w, const struct simt_fragment *fragment,
                          const struct simt_instruction *instruction,
                          const struct simt_call *call) {
    struct simt_conditions *conditions = w->warp.block->run->conditions;
    for (uint32_t rest = w->warp.mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t handle = argument_of(fragment, call, 0, lane);
        if (conditions == NULL || handle == 0 || handle > conditions->count) {
            simt_fail(&w->warp, instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, handle,
                      "sets the condition of handle 0x%llx, which "
                      "cudaGraphConditionalHandleCreate() has not returned",
                      (unsigned long long)handle);
            return;
        }
        conditions->values[handle - 1] = (uint32_t)argument_of(fragment, call, 1, lane);
        conditions->sets++;
    }
}

bool simt_system_starts_kernels(const char *name) {
    return strncmp(name, "cudaGetParameterBuffer", 22) == 0 ||
           strncmp(name, "cudaLaunchDevice", 16) == 0 || strncmp(name, "__cudaCDP", 9) == 0;
}

/* The runtime of the device (cudadevrt) counts as the system's: it is refused where it is used. */
bool simt_system_has(const char *name) {
    static const char *const names[] = {"vprintf", "__assertfail", "malloc", "free", NULL};
    return ptx_is_one_of(name, names) || strncmp(name, "cuda", 4) == 0 ||
           strncmp(name, "__cuda", 6) == 0;
}

bool simt_system_call(struct simt_warp_run *w, const struct simt_fragment *fragment,
                      const struct simt_instruction *instruction, const struct simt_call *call) {
    if (strcmp(call->callee, "vprintf") == 0 && call->argument_count == 2) {
        run_vprintf(w, fragment, instruction, call);
        return true;
    }
    if (strcmp(call->callee, "__assertfail") == 0 && call->argument_count >= 4) {
        run_assert(w, fragment, instruction, call);
        return true;
    }
    if (strcmp(call->callee, "malloc") == 0 && call->argument_count == 1) {
        run_malloc(w, fragment, call);
        return true;
    }
    if (strcmp(call->callee, "free") == 0 && call->argument_count == 1) {
        run_free(w, fragment, instruction, call);
        return true;
    }
    if (strcmp(call->callee, "cudaGraphSetConditional") == 0 && call->argument_count == 2) {
        run_condition(w, fragment, instruction, call);
        return true;
    }
    return false;
}

#include "common/simt/memory/fault.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/run.h"

/* Copies the next length-prefixed name of a mangled one, "5saxpy"; @return what follows or NULL. */
static const char *copy_name(const char *mangled, char *name, size_t size) {
    char *end;
    unsigned long length = strtoul(mangled, &end, 10);
    size_t used = strlen(name);
    if (length == 0 || length > strlen(end)) {
        return NULL;
    }
    if (strncmp(end, "_GLOBAL__N_", 11) == 0) {
        return end + length;
    }
    if (used + length + 3 > size) {
        return NULL;
    }
    snprintf(name + used, size - used, "%s%.*s", used > 0 ? "::" : "", (int)length, end);
    return end + length;
}

void simt_function_text(const char *mangled, char *name, size_t size) {
    const char *at = strncmp(mangled, "_Z", 2) == 0 ? mangled + 2 : NULL;
    bool nested = false;
    name[0] = '\0';
    while (at != NULL && (*at == 'N' || *at == 'L')) {
        nested = nested || *at == 'N';
        at++;
    }
    do {
        at = at != NULL && isdigit((unsigned char)*at) ? copy_name(at, name, size) : NULL;
    } while (nested && at != NULL && *at != 'E' && *at != 'I');
    if (at == NULL || name[0] == '\0') {
        snprintf(name, size, "%s", mangled);
    }
}

/* The lines of an instruction, those of callers behind the first. @return how many are known */
static size_t places_of(const struct simt_run *run, const struct simt_instruction *instruction,
                        struct ptx_place *places, size_t most) {
    const struct ptx_instruction *source = instruction != NULL ? instruction->source : NULL;
    return source != NULL && run->module != NULL
               ? ptx_source_lines(run->module, source, places, most)
               : 0;
}

static void set_source(struct simt_fault *fault, const struct simt_run *run,
                       const struct simt_instruction *instruction) {
    struct ptx_place places[1 + SIMT_FAULT_CALLERS];
    size_t count = places_of(run, instruction, places, sizeof places / sizeof *places);
    if (count > 0) {
        snprintf(fault->file, sizeof fault->file, "%s", places[0].file);
        fault->line = places[0].line;
    }
    for (size_t n = 1; n < count; n++) {
        struct simt_fault_place *caller = &fault->callers[n - 1];
        snprintf(caller->file, sizeof caller->file, "%s", places[n].file);
        caller->line = places[n].line;
    }
}

void simt_place_find(const struct simt_run *run, const struct simt_instruction *instruction,
                     struct simt_fault_place *place) {
    struct ptx_place found;
    *place = (struct simt_fault_place){.line = 0};
    if (places_of(run, instruction, &found, 1) > 0) {
        snprintf(place->file, sizeof place->file, "%s", found.file);
        place->line = found.line;
    }
}

const char *simt_place_text(const struct simt_run *run, const struct simt_instruction *instruction,
                            char *text, size_t size) {
    struct ptx_place place;
    text[0] = '\0';
    if (places_of(run, instruction, &place, 1) > 0) {
        snprintf(text, size, " at %s:%u", place.file, place.line);
    }
    return text;
}

/* Coordinates of the thread of that number. */
static void find_thread(const struct simt_run *run, uint32_t thread, uint32_t at[3]) {
    for (size_t axis = 0; axis < 3; axis++) {
        uint32_t extent = run->threads[axis] > 0 ? run->threads[axis] : 1;
        at[axis] = axis < 2 ? thread % extent : thread;
        thread /= extent;
    }
}

const char *simt_thread_text(const struct simt_run *run, uint32_t thread, char *text, size_t size) {
    uint32_t at[3];
    find_thread(run, thread, at);
    snprintf(text, size, "thread (%u,%u,%u)", at[0], at[1], at[2]);
    return text;
}

void simt_fail(struct simt_warp *warp, const struct simt_instruction *instruction, uint32_t lane,
               enum simt_fault_kind kind, uint64_t address, const char *format, ...) {
    struct simt_block *block = warp->block;
    const struct simt_run *run = block->run;
    struct simt_fault *fault = &block->fault;
    warp->fault = fault;
    if (fault->kind != SIMT_FAULT_NONE) {
        return;
    }
    *fault = (struct simt_fault){.kind = kind, .address = address, .order = block->order};
    simt_function_text(run->kernel, fault->kernel, sizeof fault->kernel);
    set_source(fault, run, instruction);
    memcpy(fault->block, block->index, sizeof fault->block);
    find_thread(run, warp->index * SIMT_LANES + lane, fault->thread);
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
}

/* What a kind of fault is called, and where to look first. */
static const struct {
    const char *name, *hint;
} kinds[] = {
    [SIMT_FAULT_NONE] = {"no fault", NULL},
    [SIMT_FAULT_OUT_OF_BOUNDS] =
        {"out of bounds", "check the index against the size of the array; the last block often has "
                          "more threads than there are elements left (if (i < n) ...)"},
    [SIMT_FAULT_MISALIGNED] =
        {"misaligned", "an address must be a multiple of the size of what is accessed: a float4 "
                       "needs a multiple of 16 bytes"},
    [SIMT_FAULT_TEXTURE] =
        {"texture or surface",
         "the type in tex2D<type>() and the function must be those of the texture's array or "
         "memory, its channels and its read mode; a kernel gets the object by value"},
    [SIMT_FAULT_FREED] = {"use after free",
                          "move cudaFree() behind the last kernel that uses the memory"},
    [SIMT_FAULT_UNINITIALISED] =
        {"uninitialised", "fill the memory first: cudaMemcpy, cudaMemset, or a store by a kernel; "
                          "did all threads store their part before it was read?"},
    [SIMT_FAULT_SHUFFLE] =
        {"shuffle", "a lane has a value for others only while it executes the same shuffle with "
                    "them: name all lanes in the mask and keep the shuffle out of branches that "
                    "only some of them enter, or drop what comes from the others"},
    [SIMT_FAULT_SHARED_RACE] =
        {"race in shared memory",
         "a __syncthreads() is missing between the two accesses, or an atomic operation"},
    [SIMT_FAULT_COPY] =
        {"asynchronous copy",
         "a thread waits for what it copies, with cp.async.wait_group N (__pipeline_wait_prior(N)) "
         "for all groups but its last N; what other threads copy is there after their wait and a "
         "__syncthreads()"},
    [SIMT_FAULT_PRODUCT] =
        {"asynchronous product",
         "wgmma.fence before the first wgmma and behind every change of its registers, then wgmma, "
         "wgmma.commit_group, and wgmma.wait_group before the sums are used"},
    [SIMT_FAULT_PROXY] =
        {"missing proxy fence",
         "threads that write shared memory for wgmma or the TMA execute fence.proxy.async "
         "(fence.proxy.async.shared::cta) before the barrier behind which it is read"},
    [SIMT_FAULT_BLOCK_RACE] =
        {"race in global memory",
         "a __syncthreads() is missing between the two accesses, or an atomic operation"},
    [SIMT_FAULT_GLOBAL_RACE] = {"race between blocks",
                                "blocks run in any order: let each block write its own part, use "
                                "atomic operations, or split the kernel in two"},
    [SIMT_FAULT_STREAM_RACE] =
        {"race between streams",
         "let the second stream wait for the first: cudaEventRecord(event, first), "
         "cudaStreamWaitEvent(second, event); or wait on the host, cudaStreamSynchronize(first)"},
    [SIMT_FAULT_HOST_RACE] =
        {"race with the host",
         "wait before the host uses managed memory: cudaDeviceSynchronize(), "
         "cudaStreamSynchronize(stream), or cudaEventSynchronize(event) of an event behind the "
         "work"},
    [SIMT_FAULT_EARLY] =
        {"dependent launch",
         "call cudaGridDependencySynchronize() (griddepcontrol.wait) before the kernel touches "
         "what "
         "the kernel before it works on, also where that calls "
         "cudaTriggerProgrammaticLaunchCompletion(): triggering makes nothing visible"},
    [SIMT_FAULT_BARRIER] =
        {"barrier", "every thread of the block must reach the same __syncthreads(), and every lane "
                    "in its mask a __..._sync(): none inside an if or a loop that only some of "
                    "them enter"},
    [SIMT_FAULT_STACK] = {"stack overflow",
                          "does the recursion end? A loop needs no stack; "
                          "cudaDeviceSetLimit(cudaLimitStackSize, bytes) makes it larger"},
    [SIMT_FAULT_ENDLESS] = {"endless loop",
                            "does the loop's condition ever become false? A block must not wait "
                            "for a later one: they need not run at the same time"},
    [SIMT_FAULT_UNSUPPORTED] = {"not supported", NULL},
    [SIMT_FAULT_TRAP] = {"trap", NULL},
    [SIMT_FAULT_ASSERT] = {"assertion failed", NULL},
};

static size_t number_of(enum simt_fault_kind kind) {
    return (size_t)kind < sizeof kinds / sizeof *kinds ? (size_t)kind : 0;
}

const char *simt_fault_name(enum simt_fault_kind kind) {
    return kinds[number_of(kind)].name;
}

const char *simt_fault_hint(enum simt_fault_kind kind) {
    return kinds[number_of(kind)].hint;
}

/* Of whole pieces of work: no thread did it, and no line is known. */
static bool is_of_work(const struct simt_fault *fault) {
    return fault->kind == SIMT_FAULT_STREAM_RACE || fault->kind == SIMT_FAULT_HOST_RACE;
}

const char *simt_fault_head(const struct simt_fault *fault, char *text, size_t size) {
    const char *name = simt_fault_name(fault->kind);
    if (is_of_work(fault)) {
        snprintf(text, size, "%s:", name);
    } else {
        snprintf(text, size, "%s: thread (%u,%u,%u) of block (%u,%u,%u)", name, fault->thread[0],
                 fault->thread[1], fault->thread[2], fault->block[0], fault->block[1],
                 fault->block[2]);
    }
    return text;
}

void simt_fault_print(const struct simt_fault *fault, FILE *stream) {
    char head[128];
    fprintf(stream, "%s %s\n", simt_fault_head(fault, head, sizeof head), fault->text);
    if (fault->file[0] != '\0') {
        fprintf(stream, "  in kernel %s at %s:%u\n", fault->kernel, fault->file, fault->line);
    } else if (!is_of_work(fault)) {
        fprintf(stream, "  in kernel %s (compile with -lineinfo to see the line)\n", fault->kernel);
    }
    for (size_t n = 0; n < SIMT_FAULT_CALLERS && fault->callers[n].file[0] != '\0'; n++) {
        fprintf(stream, "  called at %s:%u\n", fault->callers[n].file, fault->callers[n].line);
    }
    const char *hint = fault->hint != NULL ? fault->hint : simt_fault_hint(fault->kind);
    if (hint != NULL) {
        fprintf(stream, "  hint: %s\n", hint);
    }
}

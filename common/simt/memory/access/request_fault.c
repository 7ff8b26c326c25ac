/*
 * What is wrong with an access, in words: where the address lies, and next to
 * what.
 */
#include <stdlib.h>

#include "common/simt/memory/access/request.h"
#include "common/simt/memory/access/request_race.h"
#include "common/simt/memory/space/memory.h"

enum { TEXT_BYTES = 400 };

/* An address this far from an allocation has nothing to do with it. */
#define NEAR_BYTES ((uint64_t)1 << 30)

const char *simt_request_verb(const struct simt_request *request) {
    static const char *const verbs[] = {
        [SIMT_READ] = "reads", [SIMT_WRITE] = "writes", [SIMT_ATOMIC] = "updates"};
    return verbs[request->kind];
}

/* Bytes of what the program may have an array of. */
static uint64_t element_of(const struct simt_request *request) {
    return request->addresses != NULL ? request->bytes
                                      : simt_field(request->instruction, SIMT_ELEMENT_SHIFT);
}

/* " (as an array of 4-byte elements: index -1)" */
static void describe_negative(uint64_t before, uint64_t element, char *text, size_t size) {
    text[0] = '\0';
    if (element > 0 && before > 0 && before % element == 0) {
        snprintf(text, size, " (as an array of %" PRIu64 "-byte elements: index -%" PRIu64 ")",
                 element, before / element);
    }
}

/* An index below zero in 32 bits without a sign is 4 G elements too large. */
static bool describe_wrapped(const struct simt_memory *memory, uint64_t element, uint64_t address,
                             char *text, size_t size) {
    uint64_t meant = address - (element << 32), most = (uint64_t)1 << 20;
    struct simt_allocation above;
    char name[TEXT_BYTES];
    if (address < element << 32 || !simt_memory_above(memory, meant, &above) || above.freed ||
        above.address - meant > most || (above.address - meant) % element != 0) {
        return false;
    }
    uint64_t before = (above.address - meant) / element;
    simt_allocation_text(memory, &above, above.address, name, sizeof name);
    snprintf(text, size,
             ": index %" PRIu64 " of %s as an array of %" PRIu64
             "-byte elements, which is index -%" PRIu64
             " in an unsigned variable of 32 bits: it went below zero",
             ((uint64_t)1 << 32) - before, name, element, before);
    return true;
}

/* The index that the program may have used: "(as an array of 4-byte elements: index 256, the last
 * one is 255)". */
static void describe_element(const struct simt_request *request,
                             const struct simt_allocation *below, uint64_t address, char *text,
                             size_t size) {
    const struct simt_memory *memory = request->warp->block->run->memory;
    uint64_t element = element_of(request), inside = address - below->address;
    uint64_t before = simt_memory_before(memory, address);
    text[0] = '\0';
    if (element == 0) {
        return;
    }
    if (before > 0) {
        describe_negative(before, element, text, size);
    } else if (below->bytes >= element && inside >= below->bytes && inside % element == 0 &&
               inside - below->bytes < NEAR_BYTES) {
        snprintf(text, size,
                 " (as an array of %" PRIu64 "-byte elements: index %" PRIu64
                 ", the last one is %" PRIu64 ")",
                 element, inside / element, below->bytes / element - 1);
    } else {
        describe_wrapped(memory, element, address, text, size);
    }
}

static void fault_global(const struct simt_request *request, uint32_t lane, uint64_t address) {
    struct simt_warp *warp = request->warp;
    const struct simt_memory *memory = warp->block->run->memory;
    const char *verb = simt_request_verb(request);
    struct simt_allocation found;
    char where[TEXT_BYTES], index[2 * TEXT_BYTES];
    bool inside = simt_memory_find(memory, address, &found);
    simt_memory_describe(memory, address, where, sizeof where);
    if (inside && !found.freed && !found.host && !simt_memory_allows(memory, found.device)) {
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "%s %u byte%s at 0x%" PRIx64
                  ", %s, in the memory of device %d, to which this kernel's device has no access",
                  verb, request->bytes, simt_plural(request->bytes), address, where, found.device);
        warp->block->fault.hint = "cudaDeviceEnablePeerAccess(), called on the kernel's device, "
                                  "lets its kernels use the memory of another device";
    } else if (inside && found.freed) {
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_FREED, address,
                  "%s %u bytes at 0x%" PRIx64 ", %s, which was freed", verb, request->bytes,
                  address, where);
    } else if (inside && found.bytes - (address - found.address) >= request->bytes) {
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_MISALIGNED, address,
                  "%s %u bytes at 0x%" PRIx64 ", which is not a multiple of %u: %s", verb,
                  request->bytes, address, request->bytes, where);
    } else if (inside) {
        uint64_t left = found.bytes - (address - found.address);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "%s %u bytes at 0x%" PRIx64 ", %s: the last %" PRIu64 " of them lie past its end",
                  verb, request->bytes, address, where, request->bytes - left);
    } else {
        describe_element(request, &found, address, index, sizeof index);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "%s %u byte%s at 0x%" PRIx64 ", %s%s", verb, request->bytes,
                  simt_plural(request->bytes), address, where, index);
    }
}

struct bounded_space {
    const char *name;  /* "shared memory" */
    const char *owner; /* "the block's" */
    uint64_t bytes;
};

/* Offsets just below zero wrap around: at 32 bits, or at those of a generic address. */
static uint64_t bytes_before_start(uint64_t offset) {
    uint64_t before32 = (uint64_t)(uint32_t) - (uint32_t)offset;
    return offset <= UINT32_MAX && before32 < NEAR_BYTES ? before32
           : (uint64_t)-offset < NEAR_BYTES              ? (uint64_t)-offset
                                                         : 0;
}

static void fault_bounded(const struct simt_request *request, uint32_t lane, uint64_t offset,
                          const struct bounded_space *space) {
    struct simt_warp *warp = request->warp;
    const char *verb = simt_request_verb(request);
    uint64_t before = bytes_before_start(offset);
    char past[64], index[96];
    if (offset < space->bytes && space->bytes - offset >= request->bytes) {
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_MISALIGNED, offset,
                  "%s %u bytes at offset %" PRIu64 " of %s, which is not a multiple of %u", verb,
                  request->bytes, offset, space->name, request->bytes);
    } else if (before > 0) {
        describe_negative(before, element_of(request), index, sizeof index);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, offset,
                  "%s %u byte%s, %" PRIu64 " byte%s before the start of %s %s%s", verb,
                  request->bytes, simt_plural(request->bytes), before, simt_plural(before),
                  space->owner, space->name, index);
    } else if (offset < space->bytes) {
        uint64_t over = request->bytes - (space->bytes - offset);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, offset,
                  "%s %u bytes at offset %" PRIu64 " of %s, the last %" PRIu64
                  " of them past the end of %s %" PRIu64 " bytes",
                  verb, request->bytes, offset, space->name, over, space->owner, space->bytes);
    } else {
        simt_describe_past(offset - space->bytes, past, sizeof past);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, offset,
                  "%s %u byte%s at offset %" PRIu64 " of %s, %s %s %" PRIu64 " byte%s", verb,
                  request->bytes, simt_plural(request->bytes), offset, space->name, past,
                  space->owner, space->bytes, simt_plural(space->bytes));
    }
}

/* The last name in a mangled one, "_ZZ6kernelPiE4tile_0": tile. Other names as they are. */
static void name_variable(const char *mangled, char *name, size_t size) {
    snprintf(name, size, "%s", mangled);
    for (const char *at = strncmp(mangled, "_Z", 2) == 0 ? mangled + 2 : ""; *at != '\0'; at++) {
        char *end = NULL;
        bool begins = *at >= '1' && *at <= '9' && strchr("ZELN", at[-1]) != NULL;
        unsigned long length = begins ? strtoul(at, &end, 10) : 0;
        if (length > 0 && length <= strlen(end) && (end[length] == '\0' || end[length] == '_')) {
            snprintf(name, size, "%.*s", (int)length, end);
        }
    }
}

/* Outside of the variable that the address was computed from; @return false when it is not that. */
static bool fault_variable(const struct simt_request *request, uint32_t lane, uint64_t offset) {
    const struct simt_origin *origin = request->instruction->origin;
    const char *verb = simt_request_verb(request);
    char name[64], past[64], index[96];
    if (origin == NULL || (offset >= origin->begin && offset < origin->end &&
                           origin->end - offset >= request->bytes)) {
        return false;
    }
    name_variable(origin->variable->name, name, sizeof name);
    uint64_t before = origin->begin - offset, size = origin->end - origin->begin;
    if (bytes_before_start(offset) > 0) {
        before = origin->begin + bytes_before_start(offset);
    }
    if (offset < origin->begin || bytes_before_start(offset) > 0) {
        describe_negative(before, element_of(request), index, sizeof index);
        simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, offset,
                  "%s %u byte%s, %" PRIu64 " byte%s before the start of %s in shared memory%s",
                  verb, request->bytes, simt_plural(request->bytes), before, simt_plural(before),
                  name, index);
        return true;
    }
    simt_describe_past(offset - origin->end, past, sizeof past);
    if (offset < origin->end) {
        snprintf(past, sizeof past, "the last %" PRIu64 " of them past the end of",
                 request->bytes - (origin->end - offset));
    }
    simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, offset,
              "%s %u byte%s at offset %" PRIu64 " of shared memory, %s %s, which has %" PRIu64
              " byte%s",
              verb, request->bytes, simt_plural(request->bytes), offset, past, name, size,
              simt_plural(size));
    return true;
}

const char *simt_request_shared_text(const struct simt_request *request, char *text, size_t size) {
    const uint32_t *home = request->home->index;
    if (simt_request_is_remote(request)) {
        snprintf(text, size, "the shared memory of block (%u,%u,%u)", home[0], home[1], home[2]);
    } else {
        snprintf(text, size, "shared memory");
    }
    return text;
}

SIMT_COLD void simt_request_fault_over(const struct simt_request *request, uint32_t lane,
                                       uint64_t offset) {
    char where[TEXT_BYTES];
    simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_FREED, offset,
              "%s %u byte%s at offset %" PRIu64 " of %s, all of whose threads have returned",
              simt_request_verb(request), request->bytes, simt_plural(request->bytes), offset,
              simt_request_shared_text(request, where, sizeof where));
    request->warp->block->fault.hint = SIMT_END_HINT;
}

/* Beyond the shared memory of another block. */
static void fault_remote(const struct simt_request *request, uint32_t lane, uint64_t offset) {
    char text[TEXT_BYTES], owner[TEXT_BYTES];
    const uint32_t *home = request->home->index;
    snprintf(owner, sizeof owner, "block (%u,%u,%u)'s", home[0], home[1], home[2]);
    const struct bounded_space space = {simt_request_shared_text(request, text, sizeof text), owner,
                                        request->home->shared_bytes};
    fault_bounded(request, lane, offset, &space);
}

SIMT_COLD void simt_request_fault(const struct simt_request *request, uint32_t lane,
                                  enum ptx_space space, uint64_t address) {
    const struct simt_block *block = request->warp->block;
    if (space == PTX_SHARED && simt_request_is_remote(request)) {
        fault_remote(request, lane, address);
    } else if (space == PTX_SHARED && block->shared_bytes == 0) {
        simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "%s %u byte%s of shared memory, but the block has none: the size of an extern "
                  "__shared__ array is the third number of <<<grid, threads, bytes>>>",
                  simt_request_verb(request), request->bytes, simt_plural(request->bytes));
    } else if (space == PTX_SHARED && fault_variable(request, lane, address)) {
        return;
    } else if (space == PTX_SHARED) {
        fault_bounded(request, lane, address,
                      &(struct bounded_space){"shared memory", "the block's", block->shared_bytes});
    } else if (space == PTX_LOCAL) {
        fault_bounded(request, lane, address,
                      &(struct bounded_space){"local memory (the function's own arrays)",
                                              "the thread's", block->local_bytes});
    } else if (space == PTX_PARAM && request->kind != SIMT_READ) {
        simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "writes to a parameter of the kernel, which can only be read");
    } else if (space == PTX_PARAM) {
        fault_bounded(
            request, lane, address,
            &(struct bounded_space){"the parameters", "the kernel's", block->run->parameter_bytes});
    } else {
        fault_global(request, lane, address);
    }
}

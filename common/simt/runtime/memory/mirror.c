#include "common/simt/runtime/memory/mirror.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/checked.h"
#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

enum { PAGE_BYTES = 4096 };

static size_t chunk_count(const struct host_block *block) {
    return ceil_div(block->bytes, SIMT_HOST_CHUNK);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/** One piece of a block. */
struct piece {
    size_t number, offset, bytes;
};

static struct piece piece_at(const struct host_block *block, const void *address) {
    size_t number = (size_t)((const char *)address - (const char *)block->memory) / SIMT_HOST_CHUNK;
    size_t offset = number * SIMT_HOST_CHUNK;
    return (struct piece){number, offset, least(SIMT_HOST_CHUNK, block->bytes - offset)};
}

static void *in_program(const struct host_block *block, size_t offset) {
    return (char *)block->memory + offset;
}

static unsigned char *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/** Bytes that may be data: not those of lines of zeros, such as memory has that nobody wrote. */
static size_t data_in(const unsigned char *memory, size_t bytes) {
    static const unsigned char zeros[64];
    size_t data = 0;
    for (size_t at = 0; at < bytes; at += sizeof zeros) {
        size_t line = least(bytes - at, sizeof zeros);
        data += memcmp(memory + at, zeros, line) != 0 ? line : 0;
    }
    return data;
}

/** What the program cannot be asked for, the device has as zeros. */
static void use_piece(struct runtime *runtime, struct host_block *block, struct piece piece) {
    if (block->chunks[piece.number] != 0) {
        return;
    }
    block->chunks[piece.number] = 1;
    if (block->kind == HOST_MANAGED) {
        (void)program_take(runtime, block->copy + piece.offset, in_program(block, piece.offset),
                           piece.bytes);
        runtime->moved += piece.bytes;
        runtime->sent += data_in(block->copy + piece.offset, piece.bytes);
        return;
    }
    if (block->copy != NULL) {
        (void)program_read(runtime, block->copy + piece.offset, in_program(block, piece.offset),
                           piece.bytes);
        memcpy(block->before + piece.offset, block->copy + piece.offset, piece.bytes);
        runtime->sent += data_in(block->copy + piece.offset, piece.bytes);
    }
    runtime->used += piece.bytes;
    runtime->fetched += piece.bytes;
}

/** Kernels run on several threads. */
static void wanted(void *context, uint64_t address) {
    struct runtime *runtime = context;
    const void *pointer = (const void *)(uintptr_t)address;
    pthread_mutex_lock(&runtime->mirror_lock);
    struct host_block *block = host_block_find(runtime, pointer);
    if (block != NULL) {
        use_piece(runtime, block, piece_at(block, pointer));
    }
    pthread_mutex_unlock(&runtime->mirror_lock);
}

cudaError_t mirror_open(struct runtime *runtime, struct host_block *block, void *copy) {
    bool apart = runtime->program != NULL;
    bool managed = block->kind == HOST_MANAGED;
    block->variable = copy != NULL;
    block->copy = copy != NULL ? copy : apart || managed ? map(block->bytes) : NULL;
    block->before = apart && !managed ? map(block->bytes) : NULL;
    block->chunks = calloc(chunk_count(block), sizeof *block->chunks);
    if (block->chunks == NULL || ((apart || managed) && block->copy == NULL) ||
        (apart && !managed && block->before == NULL)) {
        mirror_close(block);
        return cudaErrorMemoryAllocation;
    }
    if (block->copy != NULL) {
        simt_memory_place_host(runtime->memory, block->memory, block->copy);
    }
    simt_memory_watch_host(runtime->memory, wanted, runtime);
    return cudaSuccess;
}

void mirror_close(struct host_block *block) {
    if (block->copy != NULL && !block->variable) {
        munmap(block->copy, block->bytes);
    }
    if (block->before != NULL) {
        munmap(block->before, block->bytes);
    }
    free(block->chunks);
    block->copy = block->before = block->chunks = NULL;
}

void mirror_use(struct runtime *runtime, const void *memory, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const char *at = (const char *)memory + done;
        struct host_block *block = host_block_find(runtime, at);
        if (block == NULL) {
            return;
        }
        struct piece piece = piece_at(block, at);
        use_piece(runtime, block, piece);
        done += piece.offset + piece.bytes - (size_t)(at - (const char *)block->memory);
    }
}

void mirror_begin(struct runtime *runtime) {
    if (runtime->controlled) {
        return; /* a controller's copy has nothing to do with the program's variables */
    }
    for (struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
        if (b->variable) {
            mirror_use(runtime, b->memory, b->bytes);
        }
    }
}

/** Sends runs of pages of a piece that differ from what was fetched. */
static void send_back(struct runtime *runtime, struct host_block *block, struct piece piece) {
    size_t begin = 0;
    size_t end = 0; /* of the run that is not sent yet */
    for (size_t at = piece.offset; at < piece.offset + piece.bytes; at += PAGE_BYTES) {
        size_t bytes = least(piece.offset + piece.bytes - at, PAGE_BYTES);
        if (memcmp(block->copy + at, block->before + at, bytes) == 0) {
            continue;
        }
        if (at > end && end > begin) {
            (void)program_write(runtime, in_program(block, begin), block->copy + begin,
                                end - begin);
        }
        begin = at > end || end == 0 ? at : begin;
        end = at + bytes;
    }
    if (end > begin) {
        (void)program_write(runtime, in_program(block, begin), block->copy + begin, end - begin);
    }
}

/** @param keep other kernels have begun, and go on using their pieces */
static void put_back(struct runtime *runtime, struct host_block *block, bool keep) {
    for (size_t n = 0; n < chunk_count(block); n++) {
        if (block->chunks[n] == 0) {
            continue;
        }
        block->chunks[n] = keep;
        if (block->copy != NULL) {
            struct piece piece = piece_at(block, in_program(block, n * SIMT_HOST_CHUNK));
            send_back(runtime, block, piece);
            memcpy(block->before + piece.offset, block->copy + piece.offset, piece.bytes);
        }
    }
}

/** Charges what has crossed the bus. */
static void account(struct runtime *runtime) {
    const struct simt_gpu *gpu = runtime->settings.gpu;
    if (runtime->moved > 0) {
        struct simt_cost cost = {.kind = SIMT_COST_BUS_COPY, .bytes = runtime->moved};
        simt_model_advance(&runtime->clock, gpu, &cost);
    }
    runtime->clock += (double)runtime->used / gpu->bus;
    runtime->moved = runtime->used = 0;
}

void mirror_end(struct runtime *runtime) {
    bool keep = flights_are_begun(runtime);
    if (runtime->used > 0 || runtime->keeps_pieces) {
        for (struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
            if (b->kind != HOST_MANAGED) {
                put_back(runtime, b, keep);
            }
        }
        runtime->keeps_pieces = keep;
    }
    account(runtime);
}

/** The part of a range that is in one place. @return how many bytes; *here: where the device has
 *  them, NULL: the program has them */
static size_t part_of(struct runtime *runtime, const void *address, size_t bytes,
                      unsigned char **here) {
    struct host_block *block =
        runtime->controlled ? NULL : host_block_find(runtime, address); /* blocks are a program's */
    *here = NULL;
    if (block == NULL || block->kind != HOST_MANAGED) {
        return bytes; /* blocks do not lie side by side with other memory in one object */
    }
    struct piece piece = piece_at(block, address);
    size_t offset = (size_t)((const char *)address - (const char *)block->memory);
    if (block->chunks[piece.number] != 0) {
        *here = block->copy + offset;
    }
    return least(bytes, piece.offset + piece.bytes - offset);
}

bool mirror_read(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    bool good = true;
    for (size_t done = 0, part; done < bytes && good; done += part) {
        unsigned char *here;
        part = part_of(runtime, (const char *)from + done, bytes - done, &here);
        if (here != NULL) {
            memcpy((char *)to + done, here, part);
        } else {
            good = program_read(runtime, (char *)to + done, (const char *)from + done, part);
        }
    }
    return good;
}

bool mirror_write(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    bool good = true;
    for (size_t done = 0, part; done < bytes && good; done += part) {
        unsigned char *here;
        part = part_of(runtime, (const char *)to + done, bytes - done, &here);
        if (here != NULL) {
            memcpy(here, (const char *)from + done, part);
        } else {
            good = program_write(runtime, (char *)to + done, (const char *)from + done, part);
        }
    }
    return good;
}

static void give_piece(struct runtime *runtime, struct host_block *block, struct piece piece) {
    block->chunks[piece.number] = 0;
    (void)program_give(runtime, in_program(block, piece.offset), block->copy + piece.offset,
                       piece.bytes);
    runtime->moved += piece.bytes;
    runtime->fetched += piece.bytes;
}

/** @return the address that kernels use: of a managed variable that of its device memory. */
static uint64_t used_address(const struct runtime *runtime, const struct host_block *block,
                             const void *address) {
    const struct simt_extent window = simt_memory_window(runtime->memory);
    size_t offset = (size_t)((const char *)address - (const char *)block->memory);
    return block->variable
               ? window.begin + (uint64_t)(block->copy - (unsigned char *)window.host) + offset
               : (uint64_t)(uintptr_t)address;
}

bool mirror_fault(struct runtime *runtime, const void *address, bool writes) {
    const void *page = (const void *)((uintptr_t)address / PAGE_BYTES * PAGE_BYTES);
    struct host_block *block = host_block_find(runtime, page);
    if (block == NULL || block->kind != HOST_MANAGED) {
        return false;
    }
    struct piece piece = piece_at(block, page);
    if (block->chunks[piece.number] == 0) {
        return false;
    }
    order_host_access(runtime, address, used_address(runtime, block, address), writes);
    give_piece(runtime, block, piece);
    account(runtime);
    return true;
}

static void fetch_range(struct runtime *runtime, struct host_block *block, const void *memory,
                        size_t bytes) {
    size_t first = piece_at(block, memory).number;
    size_t last = piece_at(block, (const char *)memory + bytes - 1).number;
    for (size_t n = first; n <= last; n++) {
        if (block->chunks[n] != 0) {
            give_piece(runtime, block, piece_at(block, in_program(block, n * SIMT_HOST_CHUNK)));
        }
    }
}

cudaError_t mirror_prefetch(struct runtime *runtime, const void *memory, size_t bytes,
                            bool to_device) {
    struct host_block *block = host_block_find(runtime, memory);
    size_t offset =
        block != NULL ? (size_t)((const char *)memory - (const char *)block->memory) : 0;
    if (block == NULL || bytes == 0 || bytes > block->bytes - offset) {
        return cudaErrorInvalidValue;
    }
    if (block->kind != HOST_MANAGED) {
        return cudaSuccess;
    }
    if (to_device) {
        mirror_use(runtime, memory, bytes);
    } else {
        fetch_range(runtime, block, memory, bytes);
    }
    account(runtime);
    return cudaSuccess;
}

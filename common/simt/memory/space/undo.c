#include "common/simt/memory/space/undo.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    PAGE_BITS = PAGE / 8, /* bytes of what was written */
    BUCKETS = 1024,
    PAGES_KEPT = 1 << 14 /* beyond these the copies are given back */
};

enum { CLEAN, BUSY, SAVED };

/* A piece of host memory inside one page. */
struct host_piece {
    struct host_piece *next;
    uint64_t address;
    size_t bytes;
    unsigned char copy[];
};

struct simt_undo {
    struct simt_memory *memory;
    struct simt_extent window;
    size_t pages;
    uint8_t *states; /* (pages) */
    uint32_t *saved; /* (saved_count) numbers of pages */
    uint32_t saved_count;
    unsigned char *copies; /* as large as the window */
    unsigned char *bits;   /* (pages * PAGE_BITS) */
    pthread_mutex_t lock;  /* guards the members below */
    struct host_piece *host[BUCKETS];
    bool failed;
};

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

enum status simt_undo_create(struct simt_undo **undo, struct simt_memory *memory) {
    struct simt_undo *made = calloc(1, sizeof *made);
    *undo = NULL;
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->memory = memory;
    made->window = simt_memory_window(memory);
    made->pages = (made->window.end - made->window.begin) / PAGE;
    pthread_mutex_init(&made->lock, NULL);
    made->states = map(made->pages);
    made->saved = map(made->pages * sizeof *made->saved);
    made->copies = map(made->pages * PAGE);
    made->bits = map(made->pages * PAGE_BITS);
    if (made->states == NULL || made->saved == NULL || made->copies == NULL || made->bits == NULL) {
        simt_undo_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    *undo = made;
    return STATUS_OK;
}

void simt_undo_free(struct simt_undo *undo) {
    if (undo != NULL) {
        simt_undo_commit(undo);
        unmap(undo->states, undo->pages);
        unmap(undo->saved, undo->pages * sizeof *undo->saved);
        unmap(undo->copies, undo->pages * PAGE);
        unmap(undo->bits, undo->pages * PAGE_BITS);
        pthread_mutex_destroy(&undo->lock);
        free(undo);
    }
}

static uint64_t page_address(const struct simt_undo *undo, size_t page) {
    return undo->window.begin + page * PAGE;
}

/* Whoever comes first saves the page; the others wait for that. */
static void save_page(struct simt_undo *undo, size_t page) {
    uint8_t *state = &undo->states[page];
    uint8_t clean = CLEAN;
    if (__atomic_compare_exchange_n(state, &clean, BUSY, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        memcpy(undo->copies + page * PAGE, undo->window.host + page * PAGE, PAGE);
        memcpy(undo->bits + page * PAGE_BITS,
               simt_memory_written_bits(undo->memory, page_address(undo, page)), PAGE_BITS);
        undo->saved[__atomic_fetch_add(&undo->saved_count, 1, __ATOMIC_RELAXED)] = (uint32_t)page;
        __atomic_store_n(state, SAVED, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(state, __ATOMIC_ACQUIRE) != SAVED) {
        __builtin_ia32_pause();
    }
}

static struct host_piece *find_piece(const struct simt_undo *undo, uint64_t address) {
    struct host_piece *piece = undo->host[address / PAGE % BUCKETS];
    while (piece != NULL &&
           (address < piece->address || address - piece->address >= piece->bytes)) {
        piece = piece->next;
    }
    return piece;
}

/* The part of the address's page that belongs to its allocation. */
static void save_piece(struct simt_undo *undo, uint64_t address) {
    struct simt_extent extent;
    if (!simt_memory_extent(undo->memory, address, &extent)) {
        return;
    }
    uint64_t begin = address / PAGE * PAGE;
    uint64_t end = begin + PAGE;
    begin = begin > extent.begin ? begin : extent.begin;
    end = end < extent.end ? end : extent.end;
    struct host_piece *piece = malloc(sizeof *piece + (end - begin));
    if (piece == NULL) {
        undo->failed = true;
        return;
    }
    struct host_piece **bucket = &undo->host[address / PAGE % BUCKETS];
    *piece = (struct host_piece){.next = *bucket, .address = begin, .bytes = end - begin};
    memcpy(piece->copy, simt_memory_host(undo->memory, begin), end - begin);
    *bucket = piece;
}

/* Host memory is seldom written: a lock and a table will do. */
static void save_host(struct simt_undo *undo, uint64_t address, size_t bytes) {
    pthread_mutex_lock(&undo->lock);
    for (uint64_t at = address, end = address + bytes; at < end; at = (at / PAGE + 1) * PAGE) {
        if (find_piece(undo, at) == NULL) {
            save_piece(undo, at);
        }
    }
    pthread_mutex_unlock(&undo->lock);
}

void simt_undo_save(struct simt_undo *undo, uint64_t address, size_t bytes) {
    uint64_t offset = address - undo->window.begin;
    if (offset / PAGE >= undo->pages) {
        save_host(undo, address, bytes);
        return;
    }
    for (size_t page = offset / PAGE; page <= (offset + bytes - 1) / PAGE; page++) {
        if (__atomic_load_n(&undo->states[page], __ATOMIC_ACQUIRE) != SAVED) {
            save_page(undo, page);
        }
    }
}

void simt_undo_commit(struct simt_undo *undo) {
    for (uint32_t n = 0; n < undo->saved_count; n++) {
        undo->states[undo->saved[n]] = CLEAN;
    }
    if (undo->saved_count > PAGES_KEPT) {
        madvise(undo->copies, undo->pages * PAGE, MADV_DONTNEED);
        madvise(undo->bits, undo->pages * PAGE_BITS, MADV_DONTNEED);
    }
    undo->saved_count = 0;
    for (size_t n = 0; n < BUCKETS; n++) {
        while (undo->host[n] != NULL) {
            struct host_piece *piece = undo->host[n];
            undo->host[n] = piece->next;
            free(piece);
        }
    }
    undo->failed = false;
}

enum status simt_undo_roll_back(struct simt_undo *undo) {
    enum status status = undo->failed ? STATUS_OUT_OF_MEMORY : STATUS_OK;
    for (uint32_t n = 0; n < undo->saved_count && status == STATUS_OK; n++) {
        size_t page = undo->saved[n];
        memcpy(undo->window.host + page * PAGE, undo->copies + page * PAGE, PAGE);
        memcpy(simt_memory_written_bits(undo->memory, page_address(undo, page)),
               undo->bits + page * PAGE_BITS, PAGE_BITS);
    }
    for (size_t n = 0; n < BUCKETS && status == STATUS_OK; n++) {
        for (const struct host_piece *piece = undo->host[n]; piece != NULL; piece = piece->next) {
            memcpy(simt_memory_host(undo->memory, piece->address), piece->copy, piece->bytes);
        }
    }
    simt_undo_commit(undo);
    return status;
}

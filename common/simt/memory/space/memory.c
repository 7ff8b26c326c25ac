/*
 * Two mappings of equal size: the window provides device addresses, which the
 * host cannot access; the memory itself lies elsewhere, at a constant distance.
 * Both are reserved whole and cost nothing until used. One bit for each byte
 * records whether it was written.
 */
#include "common/simt/memory/space/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/checked.h"
#include "common/simt/memory/cache/cache.h"
#include "common/simt/memory/space/names.h"

enum { GRANULE = 256, RED_ZONE = 256, PAGE = 4096, MAX_REMEMBERED = 1 << 16 };

/* Address space beyond what may be in use, so that freed ranges can rest. */
#define SPARE_BYTES ((size_t)1 << 30)

struct record {
    struct simt_allocation allocation;
    uint64_t end;      /* end of the bytes taken, rounded up */
    uint64_t released; /* number of its release: old ones are forgotten first */
    bool complete;
    uint16_t shared[SIMT_MOST_PROGRAMS]; /* how often programs that do not own it use it */
    unsigned char *place; /* of host memory: where its contents lie; NULL: at its address */
};

/* Records by ascending address; they never overlap. */
struct table {
    struct record *records;
    size_t count, capacity;
};

struct simt_memory {
    uint64_t window;
    size_t reserved;
    unsigned char *memory;
    uint64_t *written; /* one bit a byte of the window */
    size_t limit;      /* of each GPU */
    int devices, selected;
    size_t used[SIMT_MOST_DEVICES];
    int program;
    unsigned allowed[SIMT_MOST_PROGRAMS]
                    [SIMT_MOST_DEVICES];    /* whose memory kernels may use: bits */
    struct table hosts[SIMT_MOST_PROGRAMS]; /* of programs that are not selected */
    uint64_t top;                           /* first address never handed out */
    struct table device, host;
    void (*wanted)(void *context, uint64_t address); /* NULL: nobody watches */
    void *context;
    uint64_t serial, releases;
    size_t remembered; /* freed records in `device` that are not kept */
    struct simt_l2 *l2[SIMT_MOST_DEVICES];
    struct simt_names names;
};

/* Device addresses begin here where that is free, so that messages are the same in every run. */
#define FIRST_ADDRESS ((uint64_t)0x200000000000)

static void *reserve_at(uint64_t address, size_t bytes, int protection) {
    void *memory = mmap((void *)(uintptr_t)address, bytes, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void *reserve(size_t bytes, int protection) {
    return reserve_at(0, bytes, protection);
}

static void release(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

static enum status create_caches(struct simt_memory *memory) {
    enum status status = STATUS_OK;
    for (int d = 0; status == STATUS_OK && d < memory->devices; d++) {
        status = simt_l2_create(&memory->l2[d], memory->reserved);
        for (int p = 0; p < SIMT_MOST_PROGRAMS; p++) {
            memory->allowed[p][d] = 1u << d;
        }
    }
    return status;
}

enum status simt_memory_create(struct simt_memory **memory, size_t bytes) {
    return simt_memory_create_for(memory, bytes, 1);
}

enum status simt_memory_create_for(struct simt_memory **memory, size_t bytes, int devices) {
    size_t reserved;
    *memory = NULL;
    if (devices < 1 || devices > SIMT_MOST_DEVICES) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (!checked_multiply(bytes, 2 * (size_t)devices, &reserved) ||
        !checked_add(reserved, SPARE_BYTES + PAGE - 1, &reserved)) {
        return STATUS_OVERFLOW;
    }
    reserved = reserved / PAGE * PAGE;
    struct simt_memory *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->reserved = reserved;
    made->limit = bytes;
    made->devices = devices;
    made->window = (uint64_t)(uintptr_t)reserve_at(FIRST_ADDRESS, reserved, PROT_NONE);
    made->memory = reserve(reserved, PROT_READ | PROT_WRITE);
    made->written = reserve(reserved / 8, PROT_READ | PROT_WRITE);
    enum status status = create_caches(made);
    if (made->window == 0 || made->memory == NULL || made->written == NULL || status != STATUS_OK) {
        simt_memory_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    made->top = made->window + RED_ZONE;
    *memory = made;
    return STATUS_OK;
}

void simt_memory_free(struct simt_memory *memory) {
    if (memory == NULL) {
        return;
    }
    release((void *)(uintptr_t)memory->window, memory->reserved);
    release(memory->memory, memory->reserved);
    release(memory->written, memory->reserved / 8);
    for (int d = 0; d < memory->devices; d++) {
        simt_l2_free(memory->l2[d]);
    }
    free(memory->device.records);
    free(memory->host.records);
    for (int p = 0; p < SIMT_MOST_PROGRAMS; p++) {
        if (p != memory->program) {
            free(memory->hosts[p].records);
        }
    }
    free(memory);
}

void simt_memory_select(struct simt_memory *memory, int device) {
    memory->selected = device;
}

void simt_memory_allow(struct simt_memory *memory, int device, int peer, bool allowed) {
    unsigned bit = 1u << peer, *mask = &memory->allowed[memory->program][device];
    *mask = allowed ? *mask | bit : *mask & ~bit;
}

bool simt_memory_allows(const struct simt_memory *memory, int device) {
    return (memory->allowed[memory->program][memory->selected] >> device & 1) != 0;
}

/* Number of records that begin at or below the address. */
static size_t count_below(const struct table *table, uint64_t address) {
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->records[middle].allocation.address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct record *record_below(const struct table *table, uint64_t address) {
    size_t below = count_below(table, address);
    return below == 0 ? NULL : &table->records[below - 1];
}

static bool holds(const struct record *record, uint64_t address) {
    return record != NULL && address - record->allocation.address < record->allocation.bytes;
}

static enum status table_insert(struct table *table, const struct record *record) {
    if (table->count == table->capacity) {
        size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        struct record *records = realloc(table->records, capacity * sizeof *records);
        if (records == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        table->records = records;
        table->capacity = capacity;
    }
    size_t position = count_below(table, record->allocation.address);
    memmove(table->records + position + 1, table->records + position,
            (table->count - position) * sizeof *record);
    table->records[position] = *record;
    table->count++;
    return STATUS_OK;
}

/* Forgets freed ranges released before the given number; their addresses are free again. */
static void forget(struct simt_memory *memory, uint64_t before) {
    struct table *table = &memory->device;
    size_t kept = 0;
    for (size_t n = 0; n < table->count; n++) {
        const struct record *record = &table->records[n];
        if (record->allocation.freed && !record->allocation.kept && record->released < before) {
            memory->remembered--;
        } else {
            table->records[kept++] = *record;
        }
    }
    table->count = kept;
}

static uint64_t align_up(uint64_t address, size_t alignment) {
    return (address + alignment - 1) & ~(uint64_t)(alignment - 1);
}

/* First gap between records that takes `bytes` with a red zone on both sides. */
static bool find_gap(const struct simt_memory *memory, size_t bytes, size_t alignment,
                     uint64_t *address) {
    uint64_t begin = memory->window;
    for (size_t n = 0; n <= memory->device.count; n++) {
        const struct record *next = n < memory->device.count ? &memory->device.records[n] : NULL;
        uint64_t end = next != NULL ? next->allocation.address : memory->window + memory->reserved;
        *address = align_up(begin + RED_ZONE, alignment);
        if (*address < end && end - *address >= bytes + RED_ZONE) {
            return true;
        }
        begin = next != NULL ? next->end : end;
    }
    return false;
}

static void clear_written(struct simt_memory *memory, uint64_t address, size_t bytes) {
    /* Both are multiples of 256 bytes here: whole words of the bitmap. */
    memset(memory->written + (address - memory->window) / 64, 0, bytes / 8);
}

/* Addresses never used before, as long as there are any; then gaps; then the oldest freed ones. */
static bool find_room(struct simt_memory *memory, size_t bytes, size_t alignment,
                      uint64_t *address) {
    uint64_t end = memory->window + memory->reserved;
    *address = align_up(memory->top, alignment);
    if (*address < end && end - *address >= bytes + RED_ZONE) {
        memory->top = *address + bytes + RED_ZONE;
        return true;
    }
    while (!find_gap(memory, bytes, alignment, address)) {
        if (memory->remembered == 0) {
            return false;
        }
        forget(memory, memory->releases - memory->remembered / 2);
    }
    clear_written(memory, *address, bytes);
    return true;
}

enum status simt_memory_alloc(struct simt_memory *memory, size_t bytes, size_t alignment,
                              const char *what, uint64_t *address) {
    size_t taken;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (!checked_add(bytes, GRANULE - 1, &taken)) {
        return STATUS_OVERFLOW;
    }
    taken = taken / GRANULE * GRANULE;
    alignment = alignment < GRANULE ? GRANULE : alignment;
    size_t *used = &memory->used[memory->selected];
    if (taken > memory->limit - *used || alignment > memory->reserved / 2 ||
        !find_room(memory, taken, alignment, address)) {
        return STATUS_OUT_OF_MEMORY;
    }
    const struct record record = {
        .allocation = {.address = *address,
                       .bytes = bytes,
                       .device = memory->selected,
                       .program = memory->program,
                       .what = what,
                       .serial = memory->serial + 1},
        .end = *address + taken,
    };
    enum status status = table_insert(&memory->device, &record);
    if (status == STATUS_OK) {
        memory->serial++;
        *used += taken;
    }
    return status;
}

/* Gives whole pages inside a freed range back to the system. */
static void return_pages(struct simt_memory *memory, uint64_t begin, uint64_t end) {
    uint64_t first = align_up(begin, PAGE);
    uint64_t last = end / PAGE * PAGE;
    if (first < last) {
        madvise(memory->memory + (first - memory->window), last - first, MADV_DONTNEED);
    }
}

enum status simt_memory_release(struct simt_memory *memory, uint64_t address) {
    struct record *record = record_below(&memory->device, address);
    if (record == NULL || record->allocation.address != address) {
        return STATUS_NOT_FOUND;
    }
    if (record->allocation.freed) {
        return STATUS_INVALID_ARGUMENT;
    }
    simt_names_forget(&memory->names, address, record->end);
    record->allocation.freed = true;
    record->released = memory->releases++;
    memory->used[record->allocation.device] -= record->end - address;
    return_pages(memory, address, record->end);
    memory->remembered += !record->allocation.kept;
    if (memory->remembered > MAX_REMEMBERED) {
        forget(memory, memory->releases - MAX_REMEMBERED / 2);
    }
    return STATUS_OK;
}

void simt_memory_keep(struct simt_memory *memory, uint64_t address, bool kept) {
    struct record *record = record_below(&memory->device, address);
    if (record == NULL || record->allocation.address != address ||
        record->allocation.kept == kept) {
        return;
    }
    record->allocation.kept = kept;
    if (record->allocation.freed) {
        memory->remembered += kept ? (size_t)-1 : 1;
    }
}

enum status simt_memory_again(struct simt_memory *memory, uint64_t address) {
    struct record *record = record_below(&memory->device, address);
    if (record == NULL || record->allocation.address != address) {
        return STATUS_NOT_FOUND;
    }
    if (!record->allocation.freed) {
        return STATUS_INVALID_ARGUMENT;
    }
    size_t *used = &memory->used[record->allocation.device], taken = record->end - address;
    if (taken > memory->limit - *used) {
        return STATUS_OUT_OF_MEMORY;
    }
    *used += taken;
    record->allocation.freed = false;
    record->complete = false;
    memory->remembered -= !record->allocation.kept;
    clear_written(memory, address, taken);
    return STATUS_OK;
}

/* The program has it, or shares it. */
static bool is_within_reach(const struct simt_memory *memory, const struct record *record) {
    return record->allocation.host || record->allocation.program == memory->program ||
           record->shared[memory->program] > 0;
}

void simt_memory_select_program(struct simt_memory *memory, int program) {
    memory->hosts[memory->program] = memory->host;
    memory->program = program;
    memory->host = memory->hosts[program];
}

enum status simt_memory_share(struct simt_memory *memory, uint64_t address, uint64_t serial) {
    struct record *record = record_below(&memory->device, address);
    if (!holds(record, address) || record->allocation.freed ||
        record->allocation.address != address || record->allocation.serial != serial ||
        record->shared[memory->program] == UINT16_MAX) {
        return STATUS_NOT_FOUND;
    }
    if (record->allocation.program == memory->program) {
        return STATUS_INVALID_ARGUMENT;
    }
    record->shared[memory->program]++;
    return STATUS_OK;
}

enum status simt_memory_unshare(struct simt_memory *memory, uint64_t address) {
    struct record *record = record_below(&memory->device, address);
    if (!holds(record, address) || record->allocation.address != address ||
        record->shared[memory->program] == 0) {
        return STATUS_NOT_FOUND;
    }
    record->shared[memory->program]--;
    return STATUS_OK;
}

void simt_memory_end_program(struct simt_memory *memory) {
    for (size_t n = 0; n < memory->device.count; n++) {
        memory->device.records[n].shared[memory->program] = 0;
    }
    memory->host.count = 0;
    for (int d = 0; d < memory->devices; d++) {
        memory->allowed[memory->program][d] = 1u << d;
    }
}

int simt_memory_device_of(const struct simt_memory *memory, uint64_t address) {
    const struct record *record = record_below(&memory->device, address);
    return holds(record, address) && !record->allocation.freed ? record->allocation.device : -1;
}

void simt_memory_release_all(struct simt_memory *memory, int device) {
    for (size_t n = 0; n < memory->device.count;) {
        const struct simt_allocation *allocation = &memory->device.records[n].allocation;
        size_t before = memory->device.count;
        if (allocation->device == device && allocation->program == memory->program &&
            !allocation->freed) {
            enum status status = simt_memory_release(memory, allocation->address);
            (void)status; /* it is there, and not freed */
        }
        n = memory->device.count < before ? 0 : n + 1; /* old freed ones may have been forgotten */
    }
}

enum status simt_memory_register_host(struct simt_memory *memory, void *host, size_t bytes,
                                      const char *what) {
    uint64_t address = (uint64_t)(uintptr_t)host;
    uint64_t end;
    if (host == NULL || bytes == 0 || __builtin_add_overflow(address, bytes, &end) ||
        simt_memory_is_device(memory, host)) {
        return STATUS_INVALID_ARGUMENT;
    }
    const struct record *below = record_below(&memory->host, end - 1);
    if (below != NULL && below->end > address) {
        return STATUS_INVALID_ARGUMENT;
    }
    const struct record record = {
        .allocation = {.address = address,
                       .bytes = bytes,
                       .host = true,
                       .what = what,
                       .serial = memory->serial + 1},
        .end = end,
        .complete = true,
    };
    enum status status = table_insert(&memory->host, &record);
    memory->serial += status == STATUS_OK;
    return status;
}

enum status simt_memory_unregister_host(struct simt_memory *memory, void *host) {
    struct table *table = &memory->host;
    struct record *record = record_below(table, (uint64_t)(uintptr_t)host);
    if (record == NULL || record->allocation.address != (uint64_t)(uintptr_t)host) {
        return STATUS_NOT_FOUND;
    }
    size_t position = (size_t)(record - table->records);
    memmove(record, record + 1, (table->count - position - 1) * sizeof *record);
    table->count--;
    return STATUS_OK;
}

/* Strings of the compiler: texts and names in assert() and printf(). */
static bool is_anonymous(const char *what) {
    static const char unnamed[] = "__unnamed_";
    return what[0] == '$' || strncmp(what, unnamed, sizeof unnamed - 1) == 0;
}

/* The record below an address that it can have missed: not a string of the compiler. */
static const struct record *named_below(const struct table *table, uint64_t address) {
    const struct record *record = record_below(table, address);
    while (record != NULL && is_anonymous(record->allocation.what) && !holds(record, address)) {
        record = record_below(table, record->allocation.address - 1);
    }
    return record;
}

bool simt_memory_below(const struct simt_memory *memory, uint64_t address,
                       struct simt_allocation *allocation) {
    const struct record *device = named_below(&memory->device, address);
    const struct record *host = record_below(&memory->host, address);
    const struct record *nearest = device;
    if (nearest == NULL ||
        (host != NULL && host->allocation.address > nearest->allocation.address)) {
        nearest = host;
    }
    *allocation = nearest != NULL ? nearest->allocation : (struct simt_allocation){0};
    return nearest != NULL;
}

bool simt_memory_above(const struct simt_memory *memory, uint64_t address,
                       struct simt_allocation *allocation) {
    const struct record *nearest = NULL;
    const struct table *tables[] = {&memory->device, &memory->host};
    for (size_t t = 0; t < 2; t++) {
        size_t below = count_below(tables[t], address);
        const struct record *next = below < tables[t]->count ? &tables[t]->records[below] : NULL;
        if (next != NULL &&
            (nearest == NULL || next->allocation.address < nearest->allocation.address)) {
            nearest = next;
        }
    }
    *allocation = nearest != NULL ? nearest->allocation : (struct simt_allocation){0};
    return nearest != NULL;
}

bool simt_memory_find(const struct simt_memory *memory, uint64_t address,
                      struct simt_allocation *allocation) {
    const struct record *record = record_below(&memory->device, address);
    bool hidden = holds(record, address) && !is_within_reach(memory, record);
    return simt_memory_below(memory, address, allocation) && !hidden &&
           address - allocation->address < allocation->bytes;
}

bool simt_memory_extent(const struct simt_memory *memory, uint64_t address,
                        struct simt_extent *extent) {
    const struct record *record = record_below(&memory->device, address);
    if (!holds(record, address)) {
        record = record_below(&memory->host, address);
    }
    if (!holds(record, address) || record->allocation.freed || !is_within_reach(memory, record) ||
        (!record->allocation.host && !simt_memory_allows(memory, record->allocation.device))) {
        return false;
    }
    const struct simt_allocation *allocation = &record->allocation;
    uint64_t begin = allocation->address;
    uint64_t bytes = allocation->bytes;
    if (allocation->host) { /* the piece that holds the address */
        uint64_t offset = (address - begin) / SIMT_HOST_CHUNK * SIMT_HOST_CHUNK;
        begin += offset;
        bytes = bytes - offset < SIMT_HOST_CHUNK ? bytes - offset : SIMT_HOST_CHUNK;
    }
    *extent = (struct simt_extent){
        .begin = begin,
        .end = begin + bytes,
        .host = simt_memory_host(memory, begin),
        .complete = record->complete,
    };
    return true;
}

struct simt_extent simt_memory_window(const struct simt_memory *memory) {
    return (struct simt_extent){.begin = memory->window,
                                .end = memory->window + memory->reserved,
                                .host = memory->memory,
                                .complete = true};
}

static bool in_window(const struct simt_memory *memory, uint64_t address) {
    return address - memory->window < memory->reserved;
}

/* Host memory: at its own address, unless it was placed elsewhere. */
static void *place_of(const struct simt_memory *memory, uint64_t address) {
    const struct record *record =
        memory->wanted != NULL ? record_below(&memory->host, address) : NULL;
    if (!holds(record, address)) {
        return (void *)(uintptr_t)address;
    }
    memory->wanted(memory->context, address);
    return record->place != NULL ? record->place + (address - record->allocation.address)
                                 : (void *)(uintptr_t)address;
}

void *simt_memory_host(const struct simt_memory *memory, uint64_t address) {
    return in_window(memory, address) ? memory->memory + (address - memory->window)
                                      : place_of(memory, address);
}

void simt_memory_place_host(struct simt_memory *memory, void *host, void *place) {
    struct record *record = record_below(&memory->host, (uint64_t)(uintptr_t)host);
    if (record != NULL && record->allocation.address == (uint64_t)(uintptr_t)host) {
        record->place = place;
    }
}

void simt_memory_watch_host(struct simt_memory *memory,
                            void (*wanted)(void *context, uint64_t address), void *context) {
    memory->wanted = wanted;
    memory->context = context;
}

enum status simt_memory_name(struct simt_memory *memory, uint64_t address, const char *name) {
    struct simt_allocation allocation;
    if (name == NULL || !simt_name_is_good(name)) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (!simt_memory_find(memory, address, &allocation) || allocation.freed) {
        return STATUS_NOT_FOUND;
    }
    simt_names_add(&memory->names, &allocation, address, name);
    return STATUS_OK;
}

void simt_memory_launched(struct simt_memory *memory) {
    memory->names.launches++;
}

const struct simt_names *simt_memory_names(const struct simt_memory *memory) {
    return &memory->names;
}

bool simt_memory_has_host(const struct simt_memory *memory) {
    return memory->host.count > 0;
}

bool simt_memory_is_device(const struct simt_memory *memory, const void *pointer) {
    return in_window(memory, (uint64_t)(uintptr_t)pointer);
}

/* Bits of one word of the bitmap that `bytes` bytes from bit `first` on take. */
static uint64_t word_mask(size_t first, size_t bytes) {
    uint64_t ones = bytes >= 64 ? UINT64_MAX : ((uint64_t)1 << bytes) - 1;
    return ones << first;
}

void simt_memory_mark_store(struct simt_memory *memory, uint64_t address, size_t bytes) {
    if (!in_window(memory, address)) {
        return;
    }
    size_t offset = address - memory->window;
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t first = (offset + done) % 64;
        step = bytes - done < 64 - first ? bytes - done : 64 - first;
        uint64_t *word = &memory->written[(offset + done) / 64];
        uint64_t mask = word_mask(first, step);
        if (mask == UINT64_MAX) {
            __atomic_store_n(word, mask, __ATOMIC_RELAXED);
        } else if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) != mask) {
            __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
        }
    }
}

void simt_memory_mark(struct simt_memory *memory, uint64_t address, size_t bytes) {
    simt_memory_mark_store(memory, address, bytes);
    struct record *record = record_below(&memory->device, address);
    if (record != NULL && record->allocation.address == address &&
        bytes >= record->allocation.bytes) {
        record->complete = true;
    }
}

void simt_memory_mark_all(struct simt_memory *memory) {
    for (size_t n = 0; n < memory->device.count; n++) {
        const struct simt_allocation *allocation = &memory->device.records[n].allocation;
        if (!allocation->freed) {
            simt_memory_mark(memory, allocation->address, allocation->bytes);
        }
    }
}

/* Up to 64 bits from anywhere in the bitmap. */
static uint64_t read_bits(const uint64_t *bits, size_t offset, size_t count) {
    size_t first = offset % 64;
    uint64_t value = bits[offset / 64] >> first;
    if (first + count > 64) {
        value |= bits[offset / 64 + 1] << (64 - first);
    }
    return value & word_mask(0, count);
}

static void write_bits(uint64_t *bits, size_t offset, size_t count, uint64_t value) {
    size_t first = offset % 64;
    uint64_t *word = &bits[offset / 64];
    word[0] = (word[0] & ~word_mask(first, count)) | value << first;
    if (first + count > 64) {
        word[1] = (word[1] & ~word_mask(0, first + count - 64)) | value >> (64 - first);
    }
}

/* From the end when the target lies behind the source: they may overlap. */
static void copy_bits(uint64_t *bits, size_t to, size_t from, size_t count) {
    for (size_t done = 0, step; done < count; done += step) {
        step = count - done < 64 ? count - done : 64;
        size_t at = to > from ? count - done - step : done;
        write_bits(bits, to + at, step, read_bits(bits, from + at, step));
    }
}

void simt_memory_mark_copy(struct simt_memory *memory, uint64_t to, uint64_t from, size_t bytes) {
    if (simt_memory_written(memory, from, bytes)) {
        simt_memory_mark(memory, to, bytes);
        return;
    }
    struct record *record = record_below(&memory->device, to);
    if (record != NULL) {
        record->complete = false;
    }
    copy_bits(memory->written, to - memory->window, from - memory->window, bytes);
}

bool simt_memory_written(const struct simt_memory *memory, uint64_t address, size_t bytes) {
    if (!in_window(memory, address)) {
        return true;
    }
    size_t offset = address - memory->window;
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t first = (offset + done) % 64;
        step = bytes - done < 64 - first ? bytes - done : 64 - first;
        uint64_t mask = word_mask(first, step);
        uint64_t word = __atomic_load_n(&memory->written[(offset + done) / 64], __ATOMIC_RELAXED);
        if ((word & mask) != mask) {
            return false;
        }
    }
    return true;
}

uint64_t *simt_memory_written_bits(struct simt_memory *memory, uint64_t address) {
    return memory->written + (address - memory->window) / 64;
}

void simt_memory_visit(const struct simt_memory *memory,
                       void (*visit)(const struct simt_allocation *allocation, void *argument),
                       void *argument) {
    for (size_t n = 0; n < memory->device.count; n++) {
        const struct simt_allocation *allocation = &memory->device.records[n].allocation;
        if (!allocation->freed && allocation->program == memory->program &&
            strncmp(allocation->what, "cudaMalloc", 10) == 0) {
            visit(allocation, argument);
        }
    }
}

size_t simt_memory_used_by(const struct simt_memory *memory, const char *what) {
    size_t bytes = 0;
    for (size_t n = 0; n < memory->device.count; n++) {
        const struct simt_allocation *allocation = &memory->device.records[n].allocation;
        bytes += !allocation->freed && allocation->what == what ? allocation->bytes : 0;
    }
    return bytes;
}

void simt_memory_usage(const struct simt_memory *memory, size_t *used, size_t *total) {
    *used = memory->used[memory->selected];
    *total = memory->limit;
}

void simt_memory_touched(struct simt_memory *memory, uint64_t address, size_t bytes) {
    int device = memory->devices > 1 ? simt_memory_device_of(memory, address) : 0;
    if (device >= 0) {
        simt_l2_fill(memory->l2[device], address - memory->window, bytes);
    }
}

struct simt_l2 *simt_memory_l2(const struct simt_memory *memory) {
    return memory->l2[memory->selected];
}

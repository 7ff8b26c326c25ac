/* Modules of a program in another process: their fat binaries are fetched when they are loaded, as
   most of a program's modules never are; and of these the code for this GPU alone. */
#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

enum {
    FATBIN_HEADER = 16,
    FATBIN_ENTRY = 64,         /* what is read of an entry's head */
    FETCHED_WHOLE = 128 << 10, /* bytes that come faster than several questions are answered */
    MOST_BYTES = 1 << 30
};

/** Whether the header's size is that of the copy, so that nothing behind it is read. */
static bool has_its_size(const unsigned char *copy, size_t bytes) {
    uint64_t told;
    if (bytes < FATBIN_HEADER) {
        return bytes == 0;
    }
    memcpy(&told, copy + 8, sizeof told);
    return told == bytes - FATBIN_HEADER;
}

/** @return a copy of a fat binary of the program's, which its own header ends; NULL: there is none.
 */
static void *copy_fatbin(struct runtime *runtime, const void *data, size_t bytes) {
    unsigned char *copy = bytes <= MOST_BYTES ? calloc(1, bytes + FATBIN_HEADER) : NULL;
    if (copy != NULL &&
        (!(bytes == 0 || program_read(runtime, copy, data, bytes)) || !has_its_size(copy, bytes))) {
        free(copy);
        return NULL;
    }
    return copy;
}

/** A fat binary that is fetched in pieces: zeros where there was no need for it. */
struct partial {
    struct runtime *runtime;
    const unsigned char *theirs;
    unsigned char *copy;
    size_t bytes;
};

static bool fetch(const struct partial *p, size_t begin, size_t end) {
    return begin <= end && end <= p->bytes &&
           program_read(p->runtime, p->copy + begin, p->theirs + begin, end - begin);
}

/** Where the entries begin, as the header says. */
static size_t first_entry(const struct partial *p) {
    return (size_t)(p->copy[6] | p->copy[7] << 8);
}

/** Fetches the header and the head of each entry. @return false: it is damaged */
static bool fetch_heads(const struct partial *p) {
    struct fatbin_entry entry;
    size_t at = 0;
    if (!fetch(p, 0, FATBIN_HEADER) || !has_its_size(p->copy, p->bytes)) {
        return false;
    }
    const size_t first = first_entry(p);
    while (first + at < p->bytes) {
        size_t begin = first + at;
        if (!fetch(p, begin, begin + FATBIN_ENTRY) ||
            !fatbin_next_entry(p->copy, p->bytes, &at, &entry)) {
            return false;
        }
    }
    return true;
}

/** Fetches the entries in which one of the pointers lies. */
static bool fetch_entries(const struct partial *p, const void *const *pointers, size_t count) {
    const size_t first = first_entry(p);
    struct fatbin_entry entry;
    size_t at = 0, begin = 0;
    while (fatbin_next_entry(p->copy, p->bytes, &at, &entry)) {
        const unsigned char *from = p->copy + first + begin;
        bool wanted = false;
        for (size_t n = 0; n < count; n++) {
            uintptr_t offset = (uintptr_t)pointers[n] - (uintptr_t)from;
            wanted = wanted || (pointers[n] != NULL && offset < at - begin);
        }
        if (wanted && !fetch(p, first + begin, first + at)) {
            return false;
        }
        begin = at;
    }
    return true;
}

/** Fetches what this GPU loads. @return false: all must be fetched */
static bool fetch_needed(const struct partial *p) {
    const struct simt_gpu *gpu = p->runtime->settings.gpu;
    const unsigned architecture = (unsigned)(gpu->major * 10 + gpu->minor);
    struct error unsaid = {0};
    struct fatbin_ptx ptx = {0};
    struct fatbin_packed packed = {0};
    struct fatbin_code code = {0};
    if (!fetch_heads(p)) {
        return false;
    }
    if (fatbin_find_padded_ptx(p->copy, p->bytes, architecture, &ptx, &unsaid) != STATUS_OK) {
        ptx.text = NULL;
    }
    (void)fatbin_find_packed(p->copy, p->bytes, architecture, &packed);
    (void)fatbin_find_code(p->copy, p->bytes, architecture, &code);
    const void *const wanted[] = {ptx.text, ptx.text == NULL ? packed.bytes : NULL, code.bytes};
    return fetch_entries(p, wanted, sizeof wanted / sizeof *wanted);
}

/** The same as copy_fatbin(), with zeros for what this GPU does not load. */
static void *copy_needed(struct runtime *runtime, const void *data, size_t bytes) {
    struct partial partial = {.runtime = runtime, .theirs = data, .bytes = bytes};
    if (bytes <= FETCHED_WHOLE || bytes > MOST_BYTES) {
        return copy_fatbin(runtime, data, bytes);
    }
    partial.copy = calloc(1, bytes + FATBIN_HEADER);
    if (partial.copy != NULL && fetch_needed(&partial)) {
        return partial.copy;
    }
    free(partial.copy);
    return copy_fatbin(runtime, data, bytes);
}

struct module *module_add_copy(struct runtime *runtime, const struct fatbin_wrapper *wrapper,
                               const void *data, size_t bytes) {
    static const void *const no_files[] = {NULL};
    struct module *module = module_add(runtime, NULL);
    if (module != NULL) {
        module->copied = *wrapper;
        module->copied.data = NULL;
        module->copied.files = no_files;
        module->wrapper = &module->copied;
        module->theirs = data;
        module->their_bytes = bytes;
    }
    return module;
}

bool module_fetch(struct runtime *runtime, struct module *module) {
    if (module->wrapper == &module->copied && module->copy == NULL) {
        module->copy = copy_needed(runtime, module->theirs, module->their_bytes);
        module->copied.data = module->copy;
    }
    return module->wrapper != &module->copied || module->copy != NULL;
}

/** Adds to the list that stands for the program's, with NULL at its end. */
static bool keep_file(struct module *module, void *copy) {
    void **copies =
        realloc(module->file_copies, (module->file_count + 2) * sizeof *module->file_copies);
    if (copies == NULL) {
        return false;
    }
    copies[module->file_count++] = copy;
    copies[module->file_count] = NULL;
    module->file_copies = copies;
    module->copied.files = (const void *const *)copies;
    return true;
}

bool module_add_file(struct runtime *runtime, struct module *module, const void *data,
                     size_t bytes) {
    /* One more than load() accepts, which says so. */
    void *copy = bytes > 0 && module->file_count <= MODULE_MOST_FILES
                     ? copy_fatbin(runtime, data, bytes)
                     : NULL;
    if (copy == NULL || !keep_file(module, copy)) {
        free(copy);
        return false;
    }
    return true;
}

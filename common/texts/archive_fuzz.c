/* Fuzzes the tar reader, and the xz reader below it if the input has the signature of .xz. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/texts/archive_testing.h"
#include "common/texts/tar_reader.h"
#include "common/texts/xz_reader.h"

enum { MOST_ENTRIES = 1000 };

static void read_entry(struct tar_reader *reader, const struct tar_entry *entry) {
    char content[700];
    size_t part = entry->size < sizeof content ? (size_t)entry->size : sizeof content;
    struct error error = {0};
    fuzz_require(memchr(entry->name, '\0', sizeof entry->name) != NULL);
    (void)fuzz_accepted(tar_reader_read(reader, content, part, &error), &error);
}

static void read_archive(struct byte_source source) {
    static struct tar_entry entry;
    struct tar_reader reader;
    bool found = true;
    tar_reader_create(&reader, source);
    /* Compressed input may have a huge number of entries. */
    for (int i = 0; found && i < MOST_ENTRIES; i++) {
        struct error error = {0};
        if (!fuzz_accepted(tar_reader_next(&reader, &entry, &found, &error), &error)) {
            return;
        }
        if (found) {
            read_entry(&reader, &entry);
        }
    }
}

static void read_memory(const unsigned char *data, size_t size) {
    struct memory_source memory = {.data = data, .size = size};
    read_archive((struct byte_source){memory_source_read, &memory});
}

/* The same bytes with right checksums wherever a header seems to be, so that changes get further.
 */
static void read_signed(const unsigned char *data, size_t size) {
    struct archive copy = {0};
    archive_append(&copy, data, size);
    for (size_t at = 0; size - at >= 512; at += 512) {
        if (memcmp(copy.data + at + 257, "ustar", 5) == 0) {
            archive_sign(&copy, at);
        }
    }
    read_memory(copy.data, size);
    free(copy.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!xz_recognise(data, size)) {
        read_memory(data, size);
        read_signed(data, size);
        return 0;
    }
    struct xz_reader *xz;
    struct error error = {0};
    if (xz_reader_create(&xz, data, size, &error) == STATUS_OK) {
        read_archive((struct byte_source){xz_reader_read, xz});
        xz_reader_free(xz);
    }
    return 0;
}

static struct archive make_seed(void) {
    struct archive a = {0};
    archive_add(&a, '5', "root/test/", "", 0);
    archive_add(&a, 'x', "pax", "20 path=root/a.text\n", 20);
    archive_add(&a, '0', "a", "content", 7);
    archive_add(&a, 'L', "././@LongLink", "b/c/d", 6);
    archive_add(&a, '0', "b", "", 0);
    archive_end(&a);
    return a;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    struct archive a = make_seed();
    if (index == 1) {
        bool made;
        struct archive packed = archive_xz(&a, &made);
        free(a.data);
        a = packed;
        index = made ? 0 : 2;
    }
    if (index > 0) {
        free(a.data);
        return false;
    }
    *seed = a.data;
    *size = a.size;
    return true;
}

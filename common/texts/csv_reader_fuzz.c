/* Fuzzes the CSV reader: rows end, fields stay inside the buffer, errors name a line. */
#include "common/texts/csv_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"

enum { MOST = 5 };

static void check_row(const struct csv_reader *reader, const struct csv_field *fields,
                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        fuzz_require(fields[i].text >= reader->buffer && fields[i].length <= reader->size &&
                     fields[i].text[fields[i].length] == '\0');
    }
}

static void read_all(const uint8_t *data, size_t size, bool tabs) {
    struct csv_reader reader;
    struct csv_field fields[MOST];
    fuzz_require(csv_reader_create(&reader, (const char *)data, size, tabs) == STATUS_OK);
    for (bool found = true; found;) {
        struct error error = {0};
        size_t count, before = reader.offset;
        if (csv_reader_next(&reader, fields, MOST, &count, &found, &error) != STATUS_OK) {
            fuzz_require(strncmp(error.message, "line ", 5) == 0);
            break;
        }
        fuzz_require(!found || reader.offset != before); /* else it would go on forever */
        check_row(&reader, fields, count);
    }
    csv_reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_all(data, size, false);
    read_all(data, size, true);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const texts[] = {
        "\"3\",\"Title\",\"Say \"\"hi\"\", a\\line\"\n\"4\",\"T\",\"two\nlines\"\r\n",
        "a,b,,c\n\n,\r\n\"\",x",
        "a\t\"b\tc\r\n\t\n",
        "\xef\xbb\xbf"
        "1,2,3,4,5,6\n",
    };
    if (index >= sizeof texts / sizeof *texts) {
        return false;
    }
    *size = strlen(texts[index]);
    *seed = (unsigned char *)strdup(texts[index]);
    return *seed != NULL;
}

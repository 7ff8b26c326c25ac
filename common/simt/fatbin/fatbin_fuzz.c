/* Fuzzes the search for PTX and for machine code in a fat binary; the text found is read to its
 * end, the machine code searched for a kernel. */
#include "common/simt/fatbin/fatbin.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin_image.h"
#include "common/testing/fuzz.h"

static void look_for_code(const uint8_t *data, size_t size) {
    struct fatbin_code code;
    if (!fatbin_find_code(data, size, 90, &code)) {
        return;
    }
    const uint8_t *bytes = code.bytes;
    if (bytes < data || bytes + code.size > data + size ||
        cubin_registers(bytes, code.size, "k") > UINT8_MAX) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fatbin_ptx ptx;
    look_for_code(data, size);
    struct error error = {0};
    if (fatbin_find_ptx(data, size, 90, &ptx, &error) != STATUS_OK) {
        if (error.message[0] == '\0' || ptx.text != NULL) {
            abort(); /* a refusal says why and finds nothing */
        }
        return 0;
    }
    const char *begin = (const char *)data;
    if (ptx.text < begin || ptx.text + ptx.size > begin + size || ptx.architecture > 90 ||
        (ptx.size > 0 && ptx.text[ptx.size - 1] == '\0')) {
        abort();
    }
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    enum { PTX = 1, MACHINE_CODE = 2, PLAIN = 0x11, ZSTD = 0x8011 };
    if (index > 1) {
        return false;
    }
    struct fatbin_image image = {.size = 0};
    struct cubin_image cubin;
    cubin_image_make(&cubin, "k", 40);
    fatbin_image_add_bytes(&image, MACHINE_CODE, 80, PLAIN, &cubin, sizeof cubin);
    if (index == 1) {
        fatbin_image_add(&image, PTX, 75, PLAIN, ".version 9.0");
        fatbin_image_add(&image, PTX, 90, PLAIN, ".version 9.0 .target sm_90");
    }
    fatbin_image_add(&image, PTX, 90, ZSTD, "packed");
    *seed = malloc(image.size);
    if (*seed == NULL) {
        abort();
    }
    memcpy(*seed, image.bytes, image.size);
    *size = image.size;
    return true;
}

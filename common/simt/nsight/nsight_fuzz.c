/* Fuzzes the reader of exports, and prints the data of what it takes. */
#include "common/simt/nsight/nsight.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "common/testing/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct nsight_report report = {0};
    struct error error = {0};
    char *text = malloc(size + 1), *json = NULL;
    fuzz_require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (nsight_read(&report, text, size, "fuzz", &error) == STATUS_OK) {
        size_t length = 0;
        FILE *stream = open_memstream(&json, &length);
        fuzz_require(stream != NULL && report.launch_count > 0);
        nsight_print_json(&report, stream);
        fclose(stream);
        cJSON *object = cJSON_Parse(json);
        fuzz_require(object != NULL && memchr(json, '<', length) == NULL);
        cJSON_Delete(object);
    } else {
        fuzz_require(error.message[0] != '\0');
    }
    nsight_free(&report);
    free(json);
    free(text);
    return 0;
}

#define RAW                                                                                   \
    "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"device__attribute_display_name\"," \
    "\"gpu__time_duration.sum\",\"launch__sm_count\",\"smsp__inst_executed.sum\"\n"           \
    "\"\",\"\",\"\",\"\",\"\",\"us\",\"SM\",\"inst\"\n"                                       \
    "\"0\",\"void k<2>(float *)\",\"(32, 1, 1)\",\"(264, 1, 1)\",\"a GPU\",\"3.5\",\"132\","  \
    "\"1,056\"\n"
#define SECTION                                                                                 \
    "\"File Path\",\"/x/execroot/warpbook/common/a.cu\"\n\"Function Name\",\"k<2>(float *)\"\n" \
    "\"Line No\",\"Source\",\"Address\",\"Source\",\"Instructions Executed\","                  \
    "\"Thread Instructions Executed\",\"stall_wait\"\n"
#define ROWS                                                                  \
    "\"7\",\"puts(\"a\",\"b\"); // <\",\"-\",\"-\",\"528\",\"16896\",\"5\"\n" \
    "\"\",\"\",\"0x10\",\"FADD R1, R2\",\"528\",\"16896\",\"5\"\n"

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const texts[] = {RAW, RAW "\n" SECTION ROWS, RAW SECTION ROWS SECTION ROWS,
                                        RAW "==WARNING== x\n" SECTION ROWS RAW SECTION ROWS};
    if (index >= sizeof texts / sizeof *texts) {
        return false;
    }
    *size = strlen(texts[index]);
    *seed = malloc(*size);
    fuzz_require(*seed != NULL);
    memcpy(*seed, texts[index], *size);
    return true;
}

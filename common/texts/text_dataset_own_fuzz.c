/* Fuzzes the readers of the user's own texts; the first byte chooses the format. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/testing/fuzz.h"
#include "common/texts/text_dataset.h"

static const char *const formats[] = {"csv", "tsv", "jsonl"};

static void check_samples(const struct text_dataset *dataset) {
    for (size_t i = 0; i < dataset->count; i++) {
        const struct text_sample *s = &dataset->samples[i];
        fuzz_require(s->text[s->length] == '\0' && s->length > 0);
        fuzz_require(s->label >= 0 && (size_t)s->label < dataset->labels);
        fuzz_require(dataset->label_names[s->label][0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[40];
    if (size == 0) {
        return 0;
    }
    int descriptor = memfd_create("fuzz", 0);
    fuzz_require(descriptor >= 0 && write(descriptor, data + 1, size - 1) == (ssize_t)size - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    struct text_labels labels = {0};
    const struct text_dataset_options options = {
        .split = "train", .columns = {.format = formats[data[0] % 3]}, .labels = &labels};
    struct text_dataset dataset;
    struct error error = {0};
    if (fuzz_accepted(text_dataset_open(&dataset, TEXT_DATASET_FILE, path, &options, &error),
                      &error)) {
        check_samples(&dataset);
    }
    text_dataset_close(&dataset);
    text_labels_free(&labels);
    close(descriptor);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const texts[] = {
        "0text,label\n\"say \"\"hi\"\"\",b\r\nc,2\n",
        "1label\tid\ttext\na\t1\tone \"two\nb\t2\tthree\n",
        "2{\"text\": \"a\\u00e9\", \"label\": \"x\"}\n\n{\"label\": 7, \"text\": \"b\"}\n"
        "{\"label\": true, \"text\": \"c\"}\n",
    };
    if (index >= sizeof texts / sizeof *texts) {
        return false;
    }
    *size = strlen(texts[index]);
    *seed = (unsigned char *)strdup(texts[index]);
    return *seed != NULL;
}

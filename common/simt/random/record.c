/**
 * @file record.c
 * @brief Runs random kernels on a real GPU and records what they computed.
 *
 *     record --table kernels.tsv --ptx DIR --output recorded.jsonl [--dump recorded.bin]
 *
 * The driver compiles the PTX, the very text that the emulator interprets. A line for each kernel:
 *
 *     {"kernel": "k_7", "text": HASH of its CUDA C, "sections": [HASH, ...], "atomics": HASH,
 *      "approximate": [["0x1.8p+1", ... of each recorded thread], ...]}
 *
 * The dump holds all of `out` of all kernels, for the day when a hash differs.
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/random/random_kernel.h"

struct recorder {
    const char *table, *ptx, *output, *dump;
    FILE *lines, *all;
    uint64_t *d_out;
    uint32_t *d_in;
    char file[64]; /**< of the library that is loaded */
    cudaLibrary_t library;
    size_t recorded;
};

/* One line of the table. */
struct row {
    char file[64], kernel[64];
    uint64_t seed, text;
    size_t approximate_count;
};

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

static enum status upload(struct recorder *recorder, struct error *error) {
    uint32_t in[RANDOM_IN_WORDS];
    random_kernel_input(in);
    TRY(check(cudaMalloc((void **)&recorder->d_out, RANDOM_OUT_WORDS * sizeof(uint64_t)), "out",
              error));
    TRY(check(cudaMalloc((void **)&recorder->d_in, sizeof in), "in", error));
    return check(cudaMemcpy(recorder->d_in, in, sizeof in, cudaMemcpyHostToDevice), "in", error);
}

/* Loads the file's PTX unless it is loaded already. */
static enum status load(struct recorder *recorder, const char *file, struct error *error) {
    char path[4096];
    if (strcmp(recorder->file, file) == 0) {
        return STATUS_OK;
    }
    if (recorder->library != NULL) {
        (void)cudaLibraryUnload(recorder->library);
        recorder->library = NULL;
    }
    (void)snprintf(recorder->file, sizeof recorder->file, "%s", file);
    (void)snprintf(path, sizeof path, "%s/%.*s.ptx", recorder->ptx, (int)strcspn(file, "."), file);
    return check(cudaLibraryLoadFromFile(&recorder->library, path, NULL, NULL, 0, NULL, NULL, 0),
                 path, error);
}

static enum status launch(struct recorder *recorder, const char *kernel, uint64_t *out,
                          struct error *error) {
    const size_t bytes = RANDOM_OUT_WORDS * sizeof *out;
    const dim3 blocks = {RANDOM_BLOCKS, 1, 1}, threads = {RANDOM_THREADS, 1, 1};
    void *arguments[] = {&recorder->d_out, &recorder->d_in};
    cudaKernel_t function;
    TRY(check(cudaLibraryGetKernel(&function, recorder->library, kernel), kernel, error));
    TRY(check(cudaMemset(recorder->d_out, 0, bytes), kernel, error));
    TRY(check(cudaLaunchKernel((const void *)function, blocks, threads, arguments, 0, NULL), kernel,
              error));
    return check(cudaMemcpy(out, recorder->d_out, bytes, cudaMemcpyDeviceToHost), kernel, error);
}

/* Approximate results of the first threads, exactly. */
static void write_approximate(FILE *lines, const uint64_t *out, size_t count) {
    (void)fprintf(lines, "\"approximate\":[");
    for (size_t a = 0; a < count; a++) {
        (void)fprintf(lines, "%s[", a > 0 ? "," : "");
        for (size_t thread = 0; thread < RANDOM_RECORDED_THREADS; thread++) {
            const uint32_t bits =
                (uint32_t)out[(RANDOM_SECTIONS + a) * RANDOM_ALL_THREADS + thread];
            float value;
            memcpy(&value, &bits, sizeof value);
            (void)fprintf(lines, "%s\"%a\"", thread > 0 ? "," : "", (double)value);
        }
        (void)fprintf(lines, "]");
    }
    (void)fprintf(lines, "]");
}

static void write_line(FILE *lines, const struct row *row, const uint64_t *out) {
    (void)fprintf(lines, "{\"kernel\":\"%s\",\"text\":\"%016" PRIx64 "\",\"sections\":[",
                  row->kernel, row->text);
    for (size_t section = 0; section < RANDOM_SECTIONS; section++) {
        (void)fprintf(lines, "%s\"%016" PRIx64 "\"", section > 0 ? "," : "",
                      random_kernel_hash(out + section * RANDOM_ALL_THREADS, RANDOM_ALL_THREADS));
    }
    (void)fprintf(lines, "],\"atomics\":\"%016" PRIx64 "\",",
                  random_kernel_hash(out + RANDOM_ATOMICS_AT, RANDOM_ATOMICS));
    write_approximate(lines, out, row->approximate_count);
    (void)fprintf(lines, "}\n");
}

static enum status record_kernel(struct recorder *recorder, const struct row *row,
                                 struct error *error) {
    uint64_t out[RANDOM_OUT_WORDS];
    TRY(load(recorder, row->file, error));
    TRY(launch(recorder, row->kernel, out, error));
    write_line(recorder->lines, row, out);
    if (recorder->all != NULL) {
        (void)fwrite(out, sizeof out, 1, recorder->all);
    }
    recorder->recorded++;
    return STATUS_OK;
}

static enum status record_table(struct recorder *recorder, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    enum status status = file_read(recorder->table, (size_t)1 << 26, &text, &size, error);
    for (char *line = text; status == STATUS_OK && *line != '\0';) {
        struct row row;
        if (sscanf(line, "%63s %63s %" SCNu64 " %zu %" SCNx64, row.file, row.kernel, &row.seed,
                   &row.approximate_count, &row.text) != 5 ||
            row.approximate_count > RANDOM_APPROXIMATES) {
            status = error_set(error, STATUS_BAD_FORMAT, "%s: not a line of five fields: %.60s",
                               recorder->table, line);
        } else {
            status = record_kernel(recorder, &row, error);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(text);
    return status;
}

static enum status open_output(const char *path, FILE **file, struct error *error) {
    *file = path != NULL ? fopen(path, "wb") : NULL;
    return path == NULL || *file != NULL ? STATUS_OK
                                         : error_set(error, STATUS_IO, "%s: cannot write", path);
}

static enum status close_output(const char *path, FILE *file, struct error *error) {
    return file == NULL || fclose(file) == 0 ? STATUS_OK
                                             : error_set(error, STATUS_IO, "%s: disk full", path);
}

/* The caller closes the outputs. */
static enum status open_and_record(struct recorder *recorder, struct error *error) {
    TRY(open_output(recorder->output, &recorder->lines, error));
    TRY(open_output(recorder->dump, &recorder->all, error));
    TRY(upload(recorder, error));
    return record_table(recorder, error);
}

static enum status record(struct recorder *recorder, struct error *error) {
    enum status status = open_and_record(recorder, error);
    enum status closed = close_output(recorder->output, recorder->lines, error);
    enum status dumped = close_output(recorder->dump, recorder->all, error);
    return status != STATUS_OK ? status : closed != STATUS_OK ? closed : dumped;
}

static enum status run(int argc, char **argv, struct error *error) {
    struct recorder recorder = {.table = "kernels.tsv", .ptx = ".", .output = NULL};
    const struct flag table[] = {
        {"table", 't', FLAG_STRING, &recorder.table, "FILE", "kernels, by generate_kernels"},
        {"ptx", 'p', FLAG_STRING, &recorder.ptx, "DIR", "folder of the PTX files"},
        {"output", 'o', FLAG_STRING, &recorder.output, "FILE", "JSON lines to write"},
        {"dump", 'd', FLAG_STRING, &recorder.dump, "FILE", "all results, binary"},
    };
    const struct flags flags = {
        "record", "", "Records random kernels on a GPU.", table, sizeof table / sizeof table[0],
        NULL};
    struct arguments arguments;
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    free(arguments.values);
    if (status != STATUS_OK || arguments.help) {
        return status;
    }
    if (recorder.output == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "give --output FILE");
    }
    file_enter_working_directory();
    status = record(&recorder, error);
    (void)printf("%zu kernels recorded\n", recorder.recorded);
    return status;
}

int main(int argc, char **argv) {
    struct error error = {0};
    enum status status = run(argc, argv, &error);
    return status == STATUS_OK ? 0 : report_failure("record", &error, status);
}

#include "grader/symbols/symbols.h"

#include <stdio.h>
#include <string.h>

#include "common/testing/testing.h"

static const char lab[] = "04_sgemm";

static bool refers(const char *name, const char *library, char *line, size_t size) {
    struct symbol symbol = {.name = name, .library = library};
    line[0] = '\0';
    return symbol_allowed(&symbol, lab, line, size);
}

static bool defines(const char *name, const char *library, char *line, size_t size) {
    struct symbol symbol = {.name = name, .library = library, .defined = true};
    line[0] = '\0';
    return symbol_allowed(&symbol, lab, line, size);
}

static void expect_allowed(const char *const *names, size_t count) {
    char line[512];
    for (size_t i = 0; i < count; i++) {
        if (!refers(names[i], NULL, line, sizeof line)) {
            TEST_FAIL("%s", line);
        }
    }
}

C_TEST(symbols, what_kernels_and_launches_need_is_allowed) {
    static const char *const names[] = {"cudaLaunchKernel",
                                        "__cudaLaunchKernel",
                                        "__cudaRegisterFatBinary",
                                        "cudaMemcpyAsync",
                                        "cudaGraphLaunch",
                                        "cudaEventRecord",
                                        "cudaFuncSetAttribute",
                                        "cudaOccupancyMaxPotentialBlockSize",
                                        "malloc",
                                        "memcpy",
                                        "sqrtf",
                                        "lgammal",
                                        "fprintf",
                                        "__printf_chk",
                                        "pthread_create",
                                        "error_set",
                                        "device_alloc",
                                        "device_launched",
                                        "nn_dtype_bytes",
                                        "_Znwm",
                                        "__cxa_guard_acquire",
                                        "_ZSt17__throw_bad_allocv"};
    expect_allowed(names, sizeof names / sizeof *names);
}

/* std::unordered_map, std::shared_ptr, std::function, std::thread, std::ostringstream, exceptions.
 */
C_TEST(symbols, the_standard_library_of_cpp_is_allowed) {
    static const char *const names[] = {
        "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
        "_ZSt11_Hash_bytesPKvmm",
        "__libc_single_threaded",
        "_ZSt25__throw_bad_function_callv",
        "_ZNSt6thread4joinEv",
        "_ZNSt18condition_variable10notify_allEv",
        "_ZTVNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEE",
        "_ZNSt13runtime_errorC1EPKc",
        "_ZTISt13runtime_error",
        "_ZTIi",
        "_ZNSaIcEC1Ev",
        "__once_proxy"};
    expect_allowed(names, sizeof names / sizeof *names);
}

C_TEST(symbols, harmless_functions_of_c_are_allowed) {
    static const char *const names[] = {
        "__sched_cpucount", "thrd_current", "thrd_equal", "getpagesize", "drand48",
        "feenableexcept",   "fegetround",   "isatty",     "memmem",      "asprintf",
        "strtoimax",        "cexpf",        "sysconf",    "get_nprocs",  "sched_getaffinity"};
    expect_allowed(names, sizeof names / sizeof *names);
}

C_TEST(symbols, names_of_cpp_are_shown_as_they_are_written) {
    char line[512];
    EXPECT_TRUE(!refers("_ZNSt10filesystem6removeERKNS_4pathE", NULL, line, sizeof line));
    EXPECT_STR_EQ("your code refers to std::filesystem::remove(std::filesystem::path const&): a "
                  "submission may not read or write files; printf writes to the test's output",
                  line);
    EXPECT_TRUE(!refers("_ZN5other6helperEi", NULL, line, sizeof line));
    EXPECT_TRUE(strstr(line, "refers to other::helper(int): it is not among") != NULL);
    EXPECT_TRUE(!defines("_Znwm", NULL, line, sizeof line));
    EXPECT_STR_EQ("your code defines operator new(unsigned long), a name of the compiler's "
                  "libraries, and would be called in its place: make it static or call it "
                  "something else",
                  line);
    EXPECT_TRUE(!refers("_Zno mangled name", NULL, line, sizeof line));
}

C_TEST(symbols, a_name_that_could_be_misread_is_refused) {
    struct symbol symbol = {.name = "_ZNSt6now?W", .strange = true};
    char line[512];
    EXPECT_TRUE(!symbol_allowed(&symbol, lab, line, sizeof line));
    EXPECT_TRUE(strstr(line, "a symbol \"_ZNSt6now?W\"") != NULL);
}

C_TEST(symbols, what_a_library_of_the_lab_defines_is_allowed) {
    char line[512];
    EXPECT_TRUE(
        refers("launch_rmsnorm", "//labs/03_resident_weights:operators", line, sizeof line));
    EXPECT_TRUE(!refers("launch_rmsnorm", NULL, line, sizeof line));
    EXPECT_STR_EQ("your code refers to launch_rmsnorm: it is not among what a submission may use "
                  "(grader/symbols/README.md); write what you need of it yourself",
                  line);
}

static const char *const refusals[][2] = {
    {"dlopen", "loading libraries is not allowed"},
    {"dlsym", "loading libraries is not allowed"},
    {"cudaGetDriverEntryPointByVersion", "loading libraries is not allowed"},
    {"cudaLibraryLoadData", "loading kernels from elsewhere"},
    {"cublasSgemm_v2", "a library would do your work"},
    {"cudnnCreate", "a library would do your work"},
    {"cblas_sgemm", "a library would do your work"},
    {"cpu_gemm", "a library would do your work"},
    {"nn_matmul", "reference operator"},
    {"message_send", "belongs to the grader or to a bench"},
    {"worker", "belongs to the grader or to a bench"},
    {"device_trace", "belongs to the grader or to a bench"},
    {"cudaIpcOpenMemHandle", "may not use this part of the CUDA runtime"},
    {"cuLaunchKernel", "the driver's interface"},
    {"fork", "may not start or signal processes"},
    {"execve", "may not start or signal processes"},
    {"kill", "may not start or signal processes"},
    {"ptrace", "may not start or signal processes"},
    {"socket", "may not communicate"},
    {"mmap", "allocate memory with malloc"},
    {"mprotect", "allocate memory with malloc"},
    {"sigaction", "a crash must stay visible"},
    {"siglongjmp", "a crash must stay visible"},
    {"syscall", "system calls are not allowed"},
    {"getenv", "may depend on its arguments alone"},
    {"environ", "may depend on its arguments alone"},
    {"fopen64", "may not read or write files"},
    {"file_view_open", "may not read or write files"},
    {"clock_gettime", "the grader's clock"},
    {"device_now", "the grader's clock"},
    {"exit", "return a status"},
    {"sched_setaffinity", "not among what a submission may use"},
    {"gnu_get_libc_version", "not among what a submission may use"},
};

C_TEST(symbols, each_refusal_says_why_and_what_to_do) {
    char line[512], want[128];
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        snprintf(want, sizeof want, "your code refers to %s: ", refusals[i][0]);
        bool allowed = refers(refusals[i][0], NULL, line, sizeof line);
        if (allowed || strncmp(line, want, strlen(want)) != 0 ||
            strstr(line, refusals[i][1]) == NULL) {
            TEST_FAIL("%s: %s", refusals[i][0], allowed ? "is allowed" : line);
        }
    }
}

C_TEST(symbols, a_library_that_the_lab_names_does_not_give_reference_operators) {
    char line[512];
    EXPECT_TRUE(!refers("nn_matmul", "//common/nn:nn", line, sizeof line));
    EXPECT_TRUE(!refers("file_read", "//common/base:base", line, sizeof line));
}

C_TEST(symbols, threads_by_openmp_are_for_lab_01) {
    struct symbol symbol = {.name = "GOMP_parallel"};
    char line[512];
    EXPECT_TRUE(symbol_allowed(&symbol, "01_cpu_matmul", line, sizeof line));
    EXPECT_TRUE(!symbol_allowed(&symbol, lab, line, sizeof line));
    symbol.name = "omp_get_wtime";
    EXPECT_TRUE(!symbol_allowed(&symbol, "01_cpu_matmul", line, sizeof line));
}

C_TEST(symbols, names_of_its_own_may_be_defined) {
    static const char *const names[] = {"sgemm", "sgemm_ladder", "tile_kernel", "_Z6helperPKfi",
                                        "_ZTV5shape"};
    char line[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!defines(names[i], NULL, line, sizeof line)) {
            TEST_FAIL("%s", line);
        }
    }
}

C_TEST(symbols, names_of_others_may_not_be_defined) {
    static const char *const owners[][3] = {
        {"cudaEventElapsedTime", NULL, "the CUDA runtime and its libraries"},
        {"cudaEventElapsedTime", "//common/bazel:simt_library",
         "the CUDA runtime and its libraries"},
        {"device_event_elapsed", "//common/device:calls", "common/device"},
        {"device_now", "//common/device:calls", "common/device"},
        {"message_send", "//grader/isolation:message", "grader/isolation"},
        {"main", "//grader/isolation:worker", "grader/isolation"},
        {"nn_matmul", "//common/nn:nn", "common/nn"},
        {"sgemm_engine_create", "//labs/04_sgemm:engine", "labs/04_sgemm"},
        {"cJSON_Parse", "@cjson//:import_0", "cjson"},
        {"malloc", NULL, "the C library"},
        {"clock_gettime", NULL, "the C library"},
        {"write", NULL, "the C library"},
    };
    char line[512], want[256];
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        snprintf(want, sizeof want,
                 "your code defines %s, a name of %s, and would be called in its place: make it "
                 "static or call it something else",
                 owners[i][0], owners[i][2]);
        EXPECT_TRUE(!defines(owners[i][0], owners[i][1], line, sizeof line));
        EXPECT_STR_EQ(want, line);
    }
}

/* symbols_check() takes no context. */
static int refused_lines;

static void count(const char *line) {
    (void)line;
    refused_lines++;
}

static enum status check_text(const char *text, struct error *error) {
    char path[512];
    FILE *file = fopen(test_temporary_path("symbols.txt", path, sizeof path), "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        return error_set(error, STATUS_IO, "cannot write %s", path);
    }
    refused_lines = 0;
    return symbols_check(path, lab, count, error);
}

C_TEST(symbols, a_list_is_read) {
    struct error error = {0};
    EXPECT_OK(check_text("defines sgemm\nneeds malloc\n", &error));
    EXPECT_INT_EQ(0, refused_lines);
    EXPECT_OK(check_text("defines sgemm\nstrange a?W\n", &error));
    EXPECT_INT_EQ(1, refused_lines);
    EXPECT_OK(check_text("defines malloc\ndefines sgemm\nneeds dlopen\nneeds free", &error));
    EXPECT_INT_EQ(2, refused_lines);
    EXPECT_OK(
        check_text("defines sgemm\nneeds attention //solutions/07_attention:attention\n", &error));
    EXPECT_INT_EQ(0, refused_lines);
}

C_TEST(symbols, what_is_no_list_is_refused) {
    static const char *const texts[] = {"",
                                        "\n",
                                        "needs malloc\n",
                                        "defines\n",
                                        "has sgemm\n",
                                        "defines sgemm\nneeds a //b:c d\n",
                                        "defines sgemm\n\nneeds malloc\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error error = {0};
        EXPECT_STATUS(STATUS_BAD_FORMAT, check_text(texts[i], &error));
        EXPECT_TRUE(error.message[0] != '\0');
    }
}

C_TEST(symbols, a_missing_list_is_no_list) {
    struct error error = {0};
    char path[512];
    test_temporary_path("missing.txt", path, sizeof path);
    EXPECT_STATUS(STATUS_NOT_FOUND, symbols_check(path, lab, count, &error));
}

// GoogleTest behind testing.h: the only C++ of the test suites.
#include "common/testing/testing.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

struct Registered {
    const char *suite, *name, *file;
    int line;
    test_function *function;
};

std::vector<Registered> &registered() {
    static std::vector<Registered> tests;
    return tests;
}

test_function *&cleaner() {
    static test_function *function;
    return function;
}

class CTest : public testing::Test {
  public:
    explicit CTest(test_function *function) : function_(function) {
    }
    void TestBody() override {
        function_();
        if (cleaner() != nullptr) {
            cleaner()();
        }
    }

  private:
    test_function *function_;
};

bool &stopped() {
    static bool after_test_stop;
    return after_test_stop;
}

// The end of a test restores all flags, so this flag is set after it.
class Stopper : public testing::EmptyTestEventListener {
    void OnTestEnd(const testing::TestInfo &) override {
        if (stopped()) {
            testing::GTEST_FLAG(fail_fast) = true;
        }
    }
};

test_observer *&observer() {
    static test_observer *function;
    return function;
}

// Passes GoogleTest's result of each test to the observer.
class Reporter : public testing::EmptyTestEventListener {
    // Drops GoogleTest's first line, "Failed".
    void OnTestPartResult(const testing::TestPartResult &part) override {
        static const char word[] = "Failed\n";
        if (part.failed() && failures_++ == 0) {
            const char *text = part.message();
            bool told = strncmp(text, word, strlen(word)) == 0;
            message_ = told ? text + strlen(word) : text;
        } else if (part.skipped() && message_.empty()) {
            message_ = part.message();
        }
        while (!message_.empty() && message_.back() == '\n') { // as GoogleTest 1.16 ends them
            message_.pop_back();
        }
    }
    void OnTestEnd(const testing::TestInfo &test) override {
        const testing::TestResult &result = *test.result();
        test_outcome outcome = {
            test.test_suite_name(), test.name(),
            result.Skipped(),       failures_,
            message_.c_str(),       1e-3 * static_cast<double>(result.elapsed_time())};
        observer()(&outcome);
        failures_ = 0;
        message_.clear();
    }
    void OnTestProgramEnd(const testing::UnitTest &) override {
        observer()(nullptr);
    }

    int failures_ = 0;
    std::string message_;
};

std::string format_va(const char *format, va_list args) {
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
    return text;
}

} // namespace

void test_register(const char *suite, const char *name, const char *file, int line,
                   test_function *function) {
    registered().push_back({suite, name, file, line, function});
}

void test_fail(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ADD_FAILURE_AT(file, line) << format_va(format, args);
    va_end(args);
}

void test_skip(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    std::string reason = format_va(format, args);
    va_end(args);
    fprintf(stderr, "skipped: %s\n", reason.c_str());
    GTEST_MESSAGE_AT_(file, line, reason.c_str(), testing::TestPartResult::kSkip);
}

void test_stop(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    std::string reason = format_va(format, args);
    va_end(args);
    fprintf(stderr, "stopped: %s\n", reason.c_str());
    ADD_FAILURE_AT(file, line) << reason;
    stopped() = true;
}

void test_observe(test_observer *function) {
    observer() = function;
}

void test_clean_up(test_function *function) {
    cleaner() = function;
}

bool test_has_failed() {
    return testing::Test::HasFailure();
}

bool test_data_path(const char *name, char *path, size_t size) {
    const char *folder = getenv("WARPBOOK_DATA");
    if (folder == nullptr || folder[0] == '\0') {
        return false;
    }
    snprintf(path, size, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

const char *test_temporary_path(const char *name, char *path, size_t size) {
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, size, "%s/%s", folder != nullptr ? folder : "/tmp", name);
    return path;
}

bool test_check_int(const char *file, int line, const char *expression, int64_t want, int64_t got) {
    if (want != got) {
        test_fail(file, line, "%s: want %" PRId64 ", got %" PRId64, expression, want, got);
    }
    return want == got;
}

bool test_check_string(const char *file, int line, const char *expression, const char *want,
                       const char *got) {
    bool same = got != nullptr && strcmp(want, got) == 0;
    if (!same) {
        test_fail(file, line, "%s:\n want \"%s\"\n got  \"%s\"", expression, want,
                  got != nullptr ? got : "(null)");
    }
    return same;
}

bool test_check_part(const char *file, int line, const char *expression, const char *part,
                     const char *got) {
    bool found = got != nullptr && strstr(got, part) != nullptr;
    if (!found) {
        test_fail(file, line, "%s:\n want \"...%s...\"\n got  \"%s\"", expression, part,
                  got != nullptr ? got : "(null)");
    }
    return found;
}

bool test_check_near(const char *file, int line, const char *expression, double want, double got,
                     double tolerance) {
    bool near = std::isfinite(got) && std::fabs(want - got) <= tolerance;
    if (!near) {
        test_fail(file, line, "%s: want %.17g, got %.17g, tolerance %g", expression, want, got,
                  tolerance);
    }
    return near;
}

bool test_check_true(const char *file, int line, const char *expression, bool value) {
    if (!value) {
        test_fail(file, line, "%s: want true", expression);
    }
    return value;
}

bool test_check_status(const char *file, int line, const char *expression, enum status want,
                       enum status got) {
    if (want != got) {
        test_fail(file, line, "%s: want %s, got %s (%s)", expression, status_name(want),
                  status_name(got), status_message(got));
    }
    return want == got;
}

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const Registered &test : registered()) {
        test_function *function = test.function;
        testing::RegisterTest(test.suite, test.name, nullptr, nullptr, test.file, test.line,
                              [function]() -> CTest * { return new CTest(function); });
    }
    if (registered().empty()) {
        fprintf(stderr, "this test program contains no test\n");
        return 1;
    }
    testing::UnitTest::GetInstance()->listeners().Append(new Stopper);
    if (observer() != nullptr) {
        testing::UnitTest::GetInstance()->listeners().Append(new Reporter);
    }
    return RUN_ALL_TESTS();
}

/* What a worker can do to the grader: make it wait, answer before it asks, leave things behind. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/message.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/test_calls.h"

static char baseline[] = "remote_test_worker";
const struct remote_program remote_program = {
    {"remote_test_worker", baseline}, REMOTE_NO_GPU, NULL};

static enum status call(const char *name, int number, struct error *error) {
    struct test_call c = {.number = number};
    return remote_call(name, &c, sizeof c, error);
}

/* The call must fail because the worker was lost, with a line in which TEXT stands. */
static void expect_lost(const char *name, int number, const char *text) {
    struct error error = {0};
    EXPECT_STATUS(STATUS_INTERRUPTED, call(name, number, &error));
    if (strstr(error.message, text) == NULL) {
        TEST_FAIL("%s: '%s' is not in '%s'", name, text, error.message);
    }
    EXPECT_TRUE(!remote_alive());
}

static int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* A worker may run for half an hour; one that has stopped talking is not waited for. */
C_TEST(hostile, a_worker_that_hangs_up_is_ended) {
    double begun = message_now();
    remote_close();
    grader_watch("a call", 20);
    expect_lost("hang_up", 0, "your code closed the grader's channel and went on, in: a call");
    grader_watch("", 0);
    remote_close();
    EXPECT_TRUE(message_now() - begun < 60.0);
}

C_TEST(hostile, a_last_word_does_not_keep_the_grader) {
    double begun = message_now();
    remote_close();
    expect_lost("last_word", 0, "your code wrote to the grader's channel");
    remote_close();
    EXPECT_OK(call("stay", 0, NULL));
    remote_close();
    EXPECT_TRUE(message_now() - begun < 60.0);
}

/* Numbers that follow the last one: once enough answers are queued, nothing needs to be asked, and
 * requests stay unread until the channel is full. */
C_TEST(hostile, nobody_answers_ahead) {
    remote_close();
    EXPECT_OK(call("answer_ahead", 100, NULL));
    expect_lost("nothing", 0, "your code wrote to the grader's channel");
    remote_close();
}

C_TEST(hostile, any_status_is_a_failure) {
    static const int values[] = {1, -1000, 2147483647};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct error error = {0};
        remote_close();
        enum status status = call("status", values[i], &error);
        EXPECT_TRUE(status != STATUS_OK && status_name(status) != NULL);
        EXPECT_TRUE(error.message[0] != '\0');
        EXPECT_OK(call("nothing", 0, NULL));
    }
}

/* A count in them would be the grader's own next time. */
C_TEST(hostile, arguments_of_timed_calls_do_not_come_back) {
    struct test_call c = {.number = 7};
    struct error error = {0};
    double ms = 0.0;
    remote_close();
    EXPECT_OK(remote_call_timed("change", &c, sizeof c, NULL, &ms, NULL));
    EXPECT_INT_EQ(7, c.number);
    EXPECT_OK(remote_call("change", &c, sizeof c, NULL));
    EXPECT_INT_EQ(1000007, c.number);
    EXPECT_STATUS(STATUS_INTERRUPTED, remote_call("last_word", &c, sizeof c, &error));
    EXPECT_INT_EQ(1000007, c.number);
}

/* What goes on in the background would slow down the baseline. */
C_TEST(hostile, the_other_side_stands_still) {
    struct test_call c = {0};
    void *memory;
    remote_close();
    ASSERT_OK(remote_alloc(&memory, sizeof *c.counter, NULL));
    c.counter = memory;
    EXPECT_OK(remote_call("stay_busy", &c, sizeof c, NULL));
    volatile unsigned *counter = memory;
    for (int i = 0; i < 3; i++) {
        remote_use(REMOTE_BASELINE);
        EXPECT_OK(call("nothing", 0, NULL));
        unsigned before = *counter;
        EXPECT_OK(call("take_time", 100, NULL));
        EXPECT_INT_EQ(before, *counter);
        remote_use(REMOTE_SUBJECT);
        EXPECT_OK(call("take_time", 200, NULL));
        EXPECT_TRUE(*counter != before);
    }
    double begun = message_now();
    remote_use(REMOTE_BASELINE);
    EXPECT_OK(call("nothing", 0, NULL));
    remote_close(); /* one of them stands still */
    EXPECT_TRUE(message_now() - begun < 10.0);
}

/* Each answer comes in time, all together do not. */
C_TEST(hostile, slow_answers_come_to_an_end) {
    enum status status = STATUS_OK;
    struct error error = {0};
    int answers = 0;
    remote_close();
    EXPECT_OK(call("nothing", 0, NULL)); /* on a busy machine its start may take longer */
    double begun = message_now();
    setenv("WARPBOOK_PATIENCE", "1", 1);
    while (status == STATUS_OK && answers < 40) {
        status = call("take_time", 300, &error);
        answers += status == STATUS_OK;
    }
    unsetenv("WARPBOOK_PATIENCE");
    EXPECT_STATUS(STATUS_INTERRUPTED, status);
    EXPECT_TRUE(answers >= 5 && answers <= 17);
    EXPECT_TRUE(message_now() - begun < 30.0);
}

/* A process that computes until it is killed. It has a session of its own, as the worker has: Linux
 * may give sessions equal shares, and one that is shared with a build server its priority. */
static pid_t keep_busy(void) {
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid();
        for (;;) {
            atomic_signal_fence(memory_order_seq_cst);
        }
    }
    return pid;
}

/* This thread, and what it starts, on one processor: the first that it may use. */
static bool use_one_processor(const cpu_set_t *all) {
    cpu_set_t one;
    int first = 0;
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, all)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

/* Two processes on the worker's only processor leave it a third of the time. */
C_TEST(hostile, a_busy_machine_takes_none_of_its_time) {
    cpu_set_t all;
    pid_t others[2];
    if (access("/proc/self/schedstat", R_OK) != 0) {
        TEST_SKIP("this kernel does not say how long a program waits for a processor");
    }
    remote_close();
    ASSERT_TRUE(sched_getaffinity(0, sizeof all, &all) == 0 && use_one_processor(&all));
    for (int i = 0; i < 2; i++) {
        others[i] = keep_busy();
        ASSERT_TRUE(others[i] > 0);
    }
    EXPECT_OK(call("nothing", 0, NULL));
    double begun = message_now();
    grader_watch("a call", 1);
    EXPECT_OK(call("compute", 700, NULL));
    EXPECT_OK(call("compute", 100, NULL)); /* in what is left of the time and was added to it */
    grader_watch("", 0);
    EXPECT_TRUE(message_now() - begun > 1.0); /* longer than the call was allowed */
    for (int i = 0; i < 2; i++) {
        EXPECT_TRUE(kill(others[i], SIGKILL) == 0 && waitpid(others[i], NULL, 0) == others[i]);
    }
    EXPECT_TRUE(sched_setaffinity(0, sizeof all, &all) == 0);
    remote_close();
}

C_TEST(hostile, workers_leave_no_descriptors) {
    remote_close();
    EXPECT_OK(call("nothing", 0, NULL));
    remote_close();
    int before = open_descriptors();
    for (int i = 0; i < 5; i++) {
        EXPECT_OK(call("nothing", 0, NULL));
        remote_close();
    }
    EXPECT_INT_EQ(before, open_descriptors());
}

/* It fails once and for all: what is left of the first try is not in the way of the next. */
C_TEST(hostile, a_worker_that_is_not_there) {
    struct error first = {0}, second = {0};
    remote_close();
    int before = open_descriptors();
    char right = baseline[0];
    baseline[0] = 'R';
    remote_use(REMOTE_BASELINE);
    EXPECT_TRUE(call("nothing", 0, &first) != STATUS_OK);
    EXPECT_TRUE(call("nothing", 0, &second) != STATUS_OK);
    EXPECT_TRUE(strstr(first.message, "Remote_test_worker") != NULL);
    EXPECT_STR_EQ(first.message, second.message);
    remote_close();
    baseline[0] = right;
    EXPECT_INT_EQ(before, open_descriptors());
}

/*
 * Somebody kills the worker, its emulated GPU, or a process that watches one of them: the request
 * behind that is told what has died, and nothing that a submission would have to do with.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/device/device.h"
#include "common/testing/children.h"
#include "common/testing/testing.h"
#include "grader/isolation/link.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/test_calls.h"

const struct remote_program remote_program = {
    {"device_test_worker", "device_test_baseline"}, REMOTE_GPU, NULL};

/* Has the worker in use keep some memory. @return its number */
static pid_t start(enum remote_side which, size_t bytes) {
    struct error error = {0};
    struct who_call call = {.bytes = bytes};
    remote_use(which);
    EXPECT_OK(remote_call("who", &call, sizeof call, &error));
    return call.pid;
}

/* The emulated GPU of the only worker. */
static pid_t find_device(void) {
    enum { MOST = 16 };
    pid_t found[MOST];
    size_t count = children_below(getpid(), found, MOST);
    for (size_t i = 0; i < count; i++) {
        if (children_is_named(found[i], "simt device")) {
            return found[i];
        }
    }
    return 0;
}

/* Until it has ended: its files are closed then. */
static void kill_and_wait(pid_t process) {
    ASSERT_TRUE(process > 1 && kill(process, SIGKILL) == 0);
    for (char state = 'R'; state != '\0' && state != 'Z'; state = children_state_of(process)) {
        children_rest(1);
    }
}

/* The next request of the side in use. */
static void expect_told(const char *line) {
    struct error error = {0};
    struct who_call call = {0};
    EXPECT_STATUS(STATUS_INTERRUPTED, remote_call("who", &call, sizeof call, &error));
    EXPECT_STR_EQ(line, error.message);
}

C_TEST(death, of_the_worker) {
    remote_close();
    kill_and_wait(start(REMOTE_SUBJECT, 0));
    expect_told("your code was ended by SIGKILL");
}

C_TEST(death, of_the_baseline) {
    remote_close();
    kill_and_wait(start(REMOTE_BASELINE, 0));
    expect_told("the baseline was ended by SIGKILL");
}

/* What the grader asks the device for meanwhile it gets: the device is there. */
C_TEST(death, of_the_worker_between_its_grader_and_the_device) {
    struct error error = {0};
    remote_close();
    kill_and_wait(start(REMOTE_SUBJECT, 0));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(remote_attach(&error));
    }
    expect_told("your code was ended by SIGKILL");
}

/* The kernel takes its time to free what a process had, and that is no work of the process. */
C_TEST(death, of_a_worker_that_stands_still) {
    remote_close();
    pid_t subject = start(REMOTE_SUBJECT, (size_t)256 << 20);
    (void)start(REMOTE_BASELINE, 0);
    kill_and_wait(subject);
    remote_use(REMOTE_SUBJECT);
    expect_told("your code was ended by SIGKILL");
}

C_TEST(death, of_the_device) {
    remote_close();
    (void)start(REMOTE_SUBJECT, 0);
    kill_and_wait(find_device());
    expect_told("the emulated GPU of your code was ended by SIGKILL");
}

C_TEST(death, of_the_device_while_the_grader_uses_it) {
    static const char line[] = "the emulated GPU of your code was ended by SIGKILL";
    struct error error = {0};
    char byte = 0;
    void *memory = NULL;
    remote_close();
    (void)start(REMOTE_SUBJECT, 0);
    ASSERT_OK(remote_attach(&error));
    kill_and_wait(find_device());
    EXPECT_STATUS(STATUS_INTERRUPTED, remote_device_said(STATUS_DEVICE, &error));
    EXPECT_STR_EQ(line, error.message);
    EXPECT_STATUS(STATUS_INTERRUPTED, device_alloc(&memory, 1, &error));
    EXPECT_STATUS(STATUS_INTERRUPTED, device_write(memory, &byte, 1, NULL, &error));
    EXPECT_STR_EQ(line, error.message);
    expect_told(line);
}

C_TEST(death, of_who_watches_the_worker) {
    remote_close();
    kill_and_wait(children_parent_of(start(REMOTE_SUBJECT, 0)));
    expect_told("your code was ended with the process that watched it, which was killed");
}

C_TEST(death, of_who_watches_the_device) {
    remote_close();
    (void)start(REMOTE_SUBJECT, 0);
    pid_t device = find_device();
    kill_and_wait(children_parent_of(device));
    for (int i = 0; i < 10000 && find_device() != 0; i++) {
        children_rest(1);
    }
    expect_told("the emulated GPU of your code was ended with the process that watched it, which "
                "was killed");
}

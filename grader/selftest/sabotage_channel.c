/* Row 6: verdicts and answers of its own making. None of them computes anything. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

/* What a test that passes would print and record. */
static enum status forged_text(const struct sabotage_call *call, struct error *error) {
    static const char text[] =
        "[       OK ] parity.transposed_b (1 ms)\n[  PASSED  ] 10 tests.\n"
        "{\"schema\":1,\"lab\":\"04_sgemm\",\"part\":\"parity\",\"test\":\"transposed_b\","
        "\"verdict\":\"pass\"}\n<testsuites tests=\"10\" failures=\"0\"/>\n";
    (void)call;
    (void)error;
    printf("%s", text);
    fprintf(stderr, "%s", text);
    return STATUS_OK;
}

/* Writes to where grades are recorded, if it can find that. */
static enum status forged_grades(const struct sabotage_call *call, struct error *error) {
    static const char *const variables[] = {"WARPBOOK_GRADES", "TEST_UNDECLARED_OUTPUTS_DIR",
                                            "BUILD_WORKSPACE_DIRECTORY"};
    (void)call;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (getenv(variables[i]) != NULL) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "nobody says where the grades are");
}

/* The request that is being served: its arguments begin with the problem. */
static struct message *request_of(const struct sabotage_call *call) {
    return (struct message *)((char *)call->problem - offsetof(struct message, bytes));
}

/* Answers the grader itself, with the right number, before there is a result. */
static enum status forged_answer(const struct sabotage_call *call, struct error *error) {
    struct message answer = *request_of(call);
    answer.status = STATUS_OK;
    (void)error;
    return message_send(WORKER_CHANNEL, &answer);
}

/* Never comes back: says yes to whatever is asked from now on. */
static enum status takes_over(const struct sabotage_call *call, struct error *error) {
    struct message *message = request_of(call);
    (void)error;
    do {
        message->status = STATUS_OK;
    } while (message_send(WORKER_CHANNEL, message) == STATUS_OK &&
             message_receive(WORKER_CHANNEL, message, -1.0) == STATUS_OK);
    _exit(0);
}

/* Makes the memory that it shares with the grader too short to be read. */
static enum status shortens_arena(const struct sabotage_call *call, struct error *error) {
    (void)call;
    return ftruncate(WORKER_ARENA, 0) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "the arena keeps its length");
}

const struct sabotage sabotage_channel[] = {
    {"forged_text", forged_text},       {"forged_grades", forged_grades},
    {"forged_answer", forged_answer},   {"takes_over", takes_over},
    {"shortens_arena", shortens_arena}, {0}};

/*
 * Grades the warm-ups: a test an exercise, each in a process of its own. They give no points, so
 * there is no sandbox.
 */
#include "common/testing/testing.h"
#include "labs/00_warmups/given/trial.h"

static void grade(enum exercise_number number) {
    struct verdict verdict;
    struct error error = {0};
    const struct exercise *exercise = exercise_at(number);
    if (trial_run(exercise, &verdict, &error) != STATUS_OK) {
        TEST_FAIL("%s: %s", exercise->name, error.message);
        return;
    }
    if (verdict.state == TRIAL_NOT_YET) {
        TEST_FAIL("%s: not yet: %s\nlook at: %s\n%s", exercise->name, verdict.message,
                  exercise->look, verdict.printed);
    } else if (verdict.message[0] != '\0') { /* what was left out on this GPU */
        TEST_SKIP("%s: %s", exercise->name, verdict.message);
    }
}

#define GRADE(name, idea, labs, needs, look) \
    C_TEST(warmups, name) {                  \
        grade(EXERCISE_##name);              \
    }
EXERCISES(GRADE)

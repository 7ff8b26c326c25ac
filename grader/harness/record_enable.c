/*
 * Compiled into each graded test, with its name: from here on it leaves records, and says so when
 * it crashes itself. The same cases in the grader's own tests do without.
 */
#include "grader/harness/crash_handler.h"
#include "grader/harness/record.h"

__attribute__((constructor)) static void begin(void) {
    crash_handler_install();
    grade_record_begin(GRADER_LAB, GRADER_SUBJECT, GRADER_PART);
}

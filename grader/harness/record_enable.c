/*
 * Compiled into each graded test, with its name: from here on it leaves records. The same cases
 * in the grader's own tests do without.
 */
#include "grader/harness/record.h"

__attribute__((constructor)) static void begin(void) {
    grade_record_begin(GRADER_LAB, GRADER_SUBJECT, GRADER_PART);
}

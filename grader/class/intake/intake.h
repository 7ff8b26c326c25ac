/**
 * @file intake.h
 * @brief Takes in what was handed in: finds the labs' files of a submission by their names, and
 *        copies them. Nothing else of it is copied, and nothing of it is run.
 */
#ifndef WARPBOOK_GRADER_CLASS_INTAKE_INTAKE_H_
#define WARPBOOK_GRADER_CLASS_INTAKE_INTAKE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "grader/class/task.h"

enum {
    MOST_FILES = 20000,    /**< entries of one submission that are looked at */
    MOST_DEPTH = 40,       /**< of its folders */
    MOST_SOURCE = 1 << 20, /**< bytes of a lab's file */
    MOST_ZIP = 256 << 20,  /**< bytes of a zip file */
    MOST_LISTING = 8 << 20 /**< bytes of what git says of a commit's files */
};

/** The labs' files that were found in one submission. */
struct found {
    const bool *chosen; /**< labs that are wanted, (LAB_COUNT) */
    char almost[300];   /**< a file that may have been meant, and why it was not taken, or "" */
    struct {
        char *text; /**< NULL: not found */
        size_t size;
        char path[400]; /**< in the submission */
        bool placed;    /**< it lies in the lab's folder: labs/LAB/FILE, LAB/FILE */
    } labs[LAB_COUNT];
};

/** What a file's path in a submission says. */
enum found_kind { FOUND_PLAIN, FOUND_LINK, FOUND_SECRET, FOUND_OTHER };

/** Reads a file that is wanted, of at most MOST_SOURCE bytes; memory that found_free() frees. */
typedef enum status found_read(void *source, char **text, size_t *size, struct error *error);

/**
 * @brief Looks at one file of a submission, and reads it if it is a lab's.
 * @param path  in the submission
 * @param bytes as far as is known before it is read
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT with a line: the submission cannot be graded
 */
MUST_CHECK enum status found_add(struct found *found, const char *path, enum found_kind kind,
                                 uint64_t bytes, found_read *read, void *source,
                                 struct error *error);

/** Notes a file that is no lab's by its name, but may have been meant. @param path in the
 * submission */
void found_almost(struct found *found, const char *path);

void found_free(struct found *found);

MUST_CHECK enum status intake_folder(struct found *found, const char *path, struct error *error);
MUST_CHECK enum status intake_zip(struct found *found, const char *path, struct error *error);

/** @param scratch folder that this function may make, and removes */
MUST_CHECK enum status intake_git(struct found *found, const char *repository, const char *scratch,
                                  struct error *error);

/** @return whether the folder is a git repository: with .git, or bare. @param git its inner folder
 */
bool intake_is_git(const char *path, char *git, size_t size);

/** One entry of the folder of submissions. */
struct submission {
    char entry[TASK_NAME]; /**< name in the folder */
    char name[TASK_NAME];  /**< whose it is: the entry without its ending */
    char refused[400];     /**< why it is not graded, or "" */
};

struct submissions {
    struct submission *all;
    size_t count;
};

/**
 * @brief Lists the entries by name. Several of one student are refused, all of them.
 * @param all submissions_free() it
 */
MUST_CHECK enum status submissions_list(struct submissions *all, const char *folder,
                                        const bool chosen[LAB_COUNT], struct error *error);

void submissions_free(struct submissions *all);

/**
 * @brief Makes a task of a submission: task.json and the labs' files. What is wrong with the
 *        submission is in task->refused.
 * @return STATUS_OK; another where the output folder is at fault
 */
MUST_CHECK enum status intake_take(struct task *task, const struct submission *submission,
                                   const char *folder, const char *output,
                                   const bool chosen[LAB_COUNT], struct error *error);

#endif

#include "grader/class/slurm/slurm_store.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/grow.h"

enum { MOST_BYTES = 1 << 20, LINE = 8 };

/* A node that does not see the folder, or has no compiler or GPU, fails each task at once. It keeps
   its place for some seconds, so that the other nodes get the tasks that wait. */
static const char script[] =
    "#!/bin/sh\n"
    "# Runs one task of a batch on a node: OUTPUT and the batch's number are its arguments.\n"
    "set -u\n"
    "output=$1 batch=$2 index=$SLURM_ARRAY_TASK_ID\n"
    "cd / || exit 75\n"
    "ids=$output/backend/batches/$batch\n"
    "[ -e \"$ids.void\" ] && exit 0\n"
    "id=$(sed -n \"$((index + 1))p\" \"$ids\" 2>/dev/null)\n"
    "if [ -z \"$id\" ]; then\n"
    "    sleep 5\n"
    "    exit 75\n"
    "fi\n"
    "child=\n"
    "trap '[ -n \"$child\" ] && kill -TERM \"$child\" 2>/dev/null' TERM INT\n"
    "\"$output/kit/bin/grade_submission\" \"$output\" \"$id\" \\\n"
    "    >>\"$output/tasks/$id/said\" 2>&1 </dev/null &\n"
    "child=$!\n"
    "wait \"$child\"\n"
    "code=$?\n"
    "while kill -0 \"$child\" 2>/dev/null; do # a signal ended the wait\n"
    "    wait \"$child\"\n"
    "    code=$?\n"
    "done\n"
    "[ \"$code\" -eq 75 ] && sleep 5\n"
    "note=$output/backend/ends/$batch.$index.$SLURM_JOB_ID\n"
    "echo \"$code ${SLURMD_NODENAME:-}\" >\"$note.part\" && mv \"$note.part\" \"$note\"\n"
    "exit \"$code\"\n";

static enum status make_folder(const char *path, struct error *error) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%.400s: cannot make the folder: %s", path,
                         strerror(errno));
    }
    return STATUS_OK;
}

__attribute__((format(printf, 4, 5))) static enum status
join(char *path, const struct slurm_store *s, struct error *error, const char *format, ...) {
    char name[64];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return folder_join(path, s->folder, name, "back end", error);
}

/* Job names are the same after a restart, and those of no other folder. */
static enum status name_jobs(struct slurm_store *s, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text = NULL;
    size_t size;
    unsigned char random[8];
    TRY(folder_join(path, s->folder, "name", "back end", error));
    if (!path_exists(path)) {
        if (getrandom(random, sizeof random, 0) != sizeof random) {
            return error_set(error, STATUS_IO, "no random number: %s", strerror(errno));
        }
        int used = snprintf(s->name, sizeof s->name, "warpbook_");
        for (size_t i = 0; i < sizeof random; i++) {
            used += snprintf(s->name + used, sizeof s->name - (size_t)used, "%02x", random[i]);
        }
        return file_write(path, s->name, strlen(s->name), error);
    }
    TRY(file_read(path, sizeof s->name - 1, &text, &size, error));
    snprintf(s->name, sizeof s->name, "%s", text);
    free(text);
    if (strncmp(s->name, "warpbook_", 9) != 0 || strlen(s->name) != 25 ||
        strspn(s->name + 9, "0123456789abcdef") != 16) {
        return error_set(error, STATUS_BAD_FORMAT, "%.400s: no name of jobs", path);
    }
    return STATUS_OK;
}

static enum status read_ids(const char *path, unsigned **ids, size_t *count, struct error *error) {
    char *text = NULL;
    size_t size, capacity = 0;
    *ids = NULL;
    *count = 0;
    TRY(file_read(path, MOST_BYTES, &text, &size, error));
    for (char *at = text, *end; *at != '\0'; at = *end == '\n' ? end + 1 : end) {
        unsigned long id = strtoul(at, &end, 10);
        if (end == at || (*end != '\n' && *end != '\0') || id > 999999 ||
            !array_grow(ids, &capacity, *count + 1, sizeof **ids)) {
            free(text);
            return error_set(error, STATUS_BAD_FORMAT, "%.400s: not a list of tasks", path);
        }
        (*ids)[(*count)++] = (unsigned)id;
    }
    free(text);
    return STATUS_OK;
}

static enum status read_batch(struct slurm_store *s, unsigned batch, struct ledger *ledger,
                              double now, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    unsigned *ids;
    size_t count;
    TRY(join(path, s, error, "batches/%u.void", batch));
    if (path_exists(path)) {
        return STATUS_OK;
    }
    TRY(join(path, s, error, "batches/%u", batch));
    enum status status = read_ids(path, &ids, &count, error);
    if (status == STATUS_OK) {
        status = ledger_add(ledger, batch, 0, ids, count, now, error);
    }
    free(ids);
    return status;
}

/* Numbers are given in order, from 1, and none is left out. */
static enum status read_batches(struct slurm_store *s, struct ledger *ledger, double now,
                                struct error *error) {
    char path[FOLDER_PATH_BYTES];
    for (s->next = 1;; s->next++) {
        TRY(join(path, s, error, "batches/%u", s->next));
        if (!path_exists(path)) {
            return STATUS_OK;
        }
        TRY(read_batch(s, s->next, ledger, now, error));
    }
}

enum status slurm_store_open(struct slurm_store *s, const char *output, struct ledger *ledger,
                             double now, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(s->folder, output, "backend", "back end", error));
    TRY(make_folder(s->folder, error));
    TRY(join(path, s, error, "batches"));
    TRY(make_folder(path, error));
    TRY(join(path, s, error, "ends"));
    TRY(make_folder(path, error));
    TRY(name_jobs(s, error));
    snprintf(s->script, sizeof s->script, "%s/run_task.sh", s->folder);
    TRY(file_write(s->script, script, sizeof script - 1, error));
    return read_batches(s, ledger, now, error);
}

enum status slurm_store_add(struct slurm_store *s, const unsigned *ids, size_t count,
                            unsigned *batch, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(join(path, s, error, "batches/%u", s->next));
    char *text = malloc(count * LINE + 1);
    size_t used = 0;
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tasks", count);
    }
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, LINE + 1, "%06u\n", ids[i] % 1000000);
    }
    enum status status = file_write(path, text, used, error);
    free(text);
    if (status == STATUS_OK) {
        *batch = s->next++;
    }
    return status;
}

enum status slurm_store_void(const struct slurm_store *s, unsigned batch, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(join(path, s, error, "batches/%u.void", batch));
    return file_write(path, "", 0, error);
}

/* A note whose name or text is not as expected is left alone. */
static void read_note(const char *folder, const char *name, struct ledger *ledger) {
    char path[FOLDER_PATH_BYTES + 300], *text = NULL, node[64] = "";
    unsigned batch, index, job;
    int used = 0, code;
    size_t size;
    if (sscanf(name, "%9u.%9u.%9u%n", &batch, &index, &job, &used) != 3 || name[used] != '\0') {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, 200, &text, &size, NULL) == STATUS_OK &&
        sscanf(text, "%9d %63s", &code, node) >= 1) {
        ledger_note(ledger, batch, index, code, node);
        unlink(path);
    }
    free(text);
}

enum status slurm_store_notes(const struct slurm_store *s, struct ledger *ledger,
                              struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(join(path, s, error, "ends"));
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return error_set(error, STATUS_IO, "%.400s: cannot read: %s", path, strerror(errno));
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        read_note(path, entry->d_name, ledger);
    }
    closedir(folder);
    return STATUS_OK;
}

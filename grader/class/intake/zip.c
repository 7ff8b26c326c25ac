/* A zip file, read by minizip. Nothing is unpacked but the files that are wanted, into memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grader/class/intake/intake.h"

#ifdef WARPBOOK_NO_MINIZIP

enum status intake_zip(struct found *found, const char *path, struct error *error) {
    (void)found;
    return error_set(error, STATUS_UNSUPPORTED,
                     "%.200s: grade_class was built without minizip: run ./setup.sh", path);
}

#else

#include <minizip/unzip.h>

enum { MOST_NAME = 2000, FLAG_ENCRYPTED = 1, MADE_BY_UNIX = 3 };

static enum status damaged(struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT, "the zip file is damaged");
}

/* At most MOST_SOURCE bytes, whatever the archive says of their number. */
static enum status read_member(void *source, char **text, size_t *size, struct error *error) {
    unzFile zip = source;
    *text = malloc(MOST_SOURCE + 1);
    if (*text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    if (unzOpenCurrentFile(zip) != UNZ_OK) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the zip file is damaged, or not packed as Deflate");
    }
    int got = 1;
    for (*size = 0; got > 0 && *size <= MOST_SOURCE; *size += got > 0 ? (size_t)got : 0) {
        got = unzReadCurrentFile(zip, *text + *size, (unsigned)(MOST_SOURCE + 1 - *size));
    }
    bool whole = unzCloseCurrentFile(zip) == UNZ_OK && got == 0;
    if (*size > MOST_SOURCE) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "a file of the zip unpacks to more than %d bytes", MOST_SOURCE);
    }
    return whole ? STATUS_OK : damaged(error);
}

/* "../x", "/x", "a/../../x", "C:/x". */
static bool leaves(const char *path) {
    if (path[0] == '/' || (path[0] != '\0' && path[1] == ':')) {
        return true;
    }
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return true;
        }
    }
    return false;
}

static enum status look_at(struct found *found, unzFile zip, struct error *error) {
    char name[MOST_NAME + 1] = "";
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(zip, &info, name, MOST_NAME, NULL, 0, NULL, 0) != UNZ_OK) {
        return damaged(error);
    }
    if (info.size_filename >= MOST_NAME || strlen(name) != info.size_filename) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "a name in the zip file is no file name");
    }
    for (char *at = strchr(name, '\\'); at != NULL; at = strchr(at, '\\')) {
        *at = '/'; /* as some programs of Windows write paths */
    }
    if (leaves(name)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%.200s: this path in the zip file leaves its folder", name);
    }
    if (info.size_filename == 0 || name[info.size_filename - 1] == '/') {
        return STATUS_OK; /* a folder */
    }
    mode_t mode = info.version >> 8 == MADE_BY_UNIX ? (mode_t)(info.external_fa >> 16) : 0;
    enum found_kind kind = S_ISLNK(mode)                            ? FOUND_LINK
                           : (mode & S_IFMT) != 0 && !S_ISREG(mode) ? FOUND_OTHER
                           : (info.flag & FLAG_ENCRYPTED) != 0      ? FOUND_SECRET
                                                                    : FOUND_PLAIN;
    return found_add(found, name, kind, info.uncompressed_size, read_member, zip, error);
}

static enum status look_at_all(struct found *found, unzFile zip, struct error *error) {
    int state = unzGoToFirstFile(zip);
    for (size_t seen = 0; state == UNZ_OK; state = unzGoToNextFile(zip)) {
        if (++seen > MOST_FILES) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "it has more than %d files",
                             MOST_FILES);
        }
        TRY(look_at(found, zip, error));
    }
    return state == UNZ_END_OF_LIST_OF_FILE ? STATUS_OK : damaged(error);
}

enum status intake_zip(struct found *found, const char *path, struct error *error) {
    struct stat seen;
    if (stat(path, &seen) != 0 || seen.st_size > MOST_ZIP) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "the zip file has more than %d MiB",
                         MOST_ZIP >> 20);
    }
    unzFile zip = unzOpen64(path);
    if (zip == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "the zip file cannot be read, or is none");
    }
    enum status status = look_at_all(found, zip, error);
    unzClose(zip);
    return status;
}

#endif

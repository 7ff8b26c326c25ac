#include "grader/report/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 64 };

static enum status find_path(char *path, size_t size, struct error *error) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = state != NULL && state[0] == '/'
                     ? snprintf(path, size, "%s/warpbook/report.key", state)
                 : home != NULL && home[0] == '/'
                     ? snprintf(path, size, "%s/.local/state/warpbook/report.key", home)
                     : 0;
    if (length == 0) {
        return error_set(error, STATUS_NOT_FOUND, "no key to sign results with: $HOME is not set");
    }
    return (size_t)length < size
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "the path of the key is too long");
}

/* Makes the folders above a file, which nobody else enters where they are new. */
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700); /* what is missing then shows when the file is opened */
        *slash = '/';
    }
}

/* Another report may make one at the same time: the first file stays. */
static enum status make(struct signature_key *key, struct error *error) {
    unsigned char bytes[SIGNATURE_KEY];
    char temporary[sizeof key->path + 16];
    make_folders(key->path);
    snprintf(temporary, sizeof temporary, "%s.%d", key->path, (int)getpid());
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool made = file >= 0 && getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes &&
                write(file, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
    made = made && (link(temporary, key->path) == 0 || errno == EEXIST);
    int failure = errno;
    if (file >= 0) {
        close(file);
        unlink(temporary);
    }
    return made ? STATUS_OK
                : error_set(error, STATUS_IO, "%s: no key to sign results with: %s", key->path,
                            strerror(failure));
}

enum status signature_key_open(struct signature_key *key, struct error *error) {
    *key = (struct signature_key){.bytes = {0}};
    TRY(find_path(key->path, sizeof key->path, error));
    if (access(key->path, F_OK) != 0) {
        TRY(make(key, error));
    }
    int file = open(key->path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return error_set(error, STATUS_IO, "%s: no key to sign results with: %s", key->path,
                         strerror(errno));
    }
    ssize_t got = read(file, key->bytes, sizeof key->bytes);
    close(file);
    return got == (ssize_t)sizeof key->bytes
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "%s: not a key of %d bytes; remove it, and another one is made",
                           key->path, SIGNATURE_KEY);
}

/* SHA-1 of the key, with each byte changed, and a text behind it. */
static void hash(const void *key, size_t key_size, unsigned char change, const void *text,
                 size_t size, unsigned char digest[SHA1_BYTES]) {
    unsigned char pad[BLOCK] = {0};
    struct sha1 sha1 = sha1_begin();
    memcpy(pad, key, key_size);
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= change;
    }
    sha1_add(&sha1, pad, sizeof pad);
    sha1_add(&sha1, text, size);
    sha1_end_bytes(&sha1, digest);
}

void signature_hmac(const void *key, size_t key_size, const void *text, size_t size,
                    char signature[SHA1_TEXT]) {
    unsigned char inner[SHA1_BYTES], outer[SHA1_BYTES];
    hash(key, key_size, 0x36, text, size, inner);
    hash(key, key_size, 0x5c, inner, sizeof inner, outer);
    sha1_text(outer, signature);
}

void signature_of(const struct signature_key *key, const char *text, size_t size,
                  char signature[SHA1_TEXT]) {
    signature_hmac(key->bytes, sizeof key->bytes, text, size, signature);
}

bool signature_equal(const char *a, const char *b) {
    unsigned char different = strlen(a) != strlen(b);
    for (size_t i = 0; different == 0 && a[i] != '\0'; i++) {
        different |= (unsigned char)(a[i] ^ b[i]);
    }
    return different == 0;
}

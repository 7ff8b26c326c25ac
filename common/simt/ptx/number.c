#include "common/simt/ptx/parser.h"

#include <stdlib.h>
#include <string.h>

/* Value of a digit in any base; 255: no digit. */
static unsigned digit_value(char c) {
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (unsigned)(c - 'a') + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return (unsigned)(c - 'A') + 10;
    }
    return 255;
}

static bool read_digits(const char *text, size_t length, unsigned base, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = digit_value(text[i]);
        if (digit >= base || __builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value)) {
            return false;
        }
    }
    return length > 0;
}

static bool read_integer(const char *text, size_t length, struct ptx_number *number) {
    length -= length > 1 && text[length - 1] == 'U';
    number->type = PTX_IMMEDIATE_INTEGER;
    if (length > 1 && text[0] == '0') {
        if (text[1] == 'x' || text[1] == 'X') {
            return read_digits(text + 2, length - 2, 16, &number->bits);
        }
        if (text[1] == 'b' || text[1] == 'B') {
            return read_digits(text + 2, length - 2, 2, &number->bits);
        }
        return read_digits(text + 1, length - 1, 8, &number->bits);
    }
    return read_digits(text, length, 10, &number->bits);
}

/* Decimal point or exponent: always a double. */
static bool read_decimal(const char *text, size_t length, struct ptx_number *number) {
    char copy[64];
    if (length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-") != length) {
        return false; /* strtod() knows more: hexadecimal, "inf" */
    }
    char *end;
    double value = strtod(copy, &end);
    memcpy(&number->bits, &value, sizeof value);
    number->type = PTX_IMMEDIATE_F64;
    return *end == '\0';
}

static bool is_decimal(const char *text, size_t length) {
    bool prefixed = length > 1 && text[0] == '0' && strchr("xXbB", text[1]) != NULL;
    return !prefixed && (memchr(text, '.', length) != NULL || memchr(text, 'e', length) != NULL ||
                         memchr(text, 'E', length) != NULL);
}

bool ptx_number_read(const char *text, size_t length, struct ptx_number *number) {
    if (length == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
        number->type = PTX_IMMEDIATE_F32;
        return read_digits(text + 2, 8, 16, &number->bits);
    }
    if (length == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
        number->type = PTX_IMMEDIATE_F64;
        return read_digits(text + 2, 16, 16, &number->bits);
    }
    if (is_decimal(text, length)) {
        return read_decimal(text, length, number);
    }
    return read_integer(text, length, number);
}

struct ptx_number ptx_number_negate(struct ptx_number number) {
    switch (number.type) {
    case PTX_IMMEDIATE_F32:
        number.bits ^= UINT64_C(1) << 31;
        break;
    case PTX_IMMEDIATE_F64:
        number.bits ^= UINT64_C(1) << 63;
        break;
    default:
        number.bits = 0 - number.bits;
    }
    return number;
}

static double number_value(struct ptx_number number) {
    if (number.type == PTX_IMMEDIATE_F64) {
        double value;
        memcpy(&value, &number.bits, sizeof value);
        return value;
    }
    if (number.type == PTX_IMMEDIATE_F32) {
        uint32_t bits = (uint32_t)number.bits;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    return (double)(int64_t)number.bits;
}

bool ptx_number_fits(struct ptx_number number, enum ptx_type type) {
    switch (number.type) {
    case PTX_IMMEDIATE_F32:
        return ptx_type_size(type) == sizeof(float) || type == PTX_F64;
    case PTX_IMMEDIATE_F64:
        return ptx_type_size(type) == sizeof(double) || type == PTX_F32;
    default:
        return ptx_type_size(type) <= sizeof number.bits;
    }
}

void ptx_number_store(struct ptx_number number, enum ptx_type type, unsigned char *bytes) {
    if (type == PTX_F32 && number.type != PTX_IMMEDIATE_F32) {
        float value = (float)number_value(number);
        memcpy(bytes, &value, sizeof value);
    } else if (type == PTX_F64 && number.type != PTX_IMMEDIATE_F64) {
        double value = number_value(number);
        memcpy(bytes, &value, sizeof value);
    } else {
        memcpy(bytes, &number.bits, ptx_type_size(type)); /* x86: the low bytes come first */
    }
}

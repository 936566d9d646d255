#ifndef VERBSREAD_FIELDS_H
#define VERBSREAD_FIELDS_H

#include <stddef.h>
#include <stdlib.h>

struct vr_field {
	const char *type;
	const char *name;
	size_t offset;
	size_t size;
};

/*
 * The field number i of a struct; without a type the struct number i. NULL
 * where there are no more.
 */
const struct vr_field *vr_field(const char *type, int i);
size_t vr_size(const char *type);

#endif

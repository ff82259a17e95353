/* Prints the operator registry, a line for each row and attribute, for schemas.py. */
#include "ops/op.h"

#include <stdio.h>

int main(void) {
    for (po_op_id op = 1; op < PO_OP_COUNT; op++) {
        const po_op_row *row = po_op_row_of(op);
        printf("op\t%s\t%s\t%d\t%d\t%d\t%d\n", row->domain, row->name, row->min_in, row->max_in,
               row->min_out, row->max_out);
        for (const po_attr_def *d = row->attrs; d && d->name; d++) {
            printf("attr\t%s\t%d\t%d\t%d\t%d\t", d->name, (int)d->kind, d->since, d->until,
                   d->required);
            if (d->has_default && d->kind == PO_ATTR_INT)
                printf("%lld", (long long)d->i);
            else if (d->has_default && d->kind == PO_ATTR_FLOAT)
                printf("%.9g", (double)d->f);
            else if (d->has_default)
                printf("'%s'", d->s ? d->s : "");
            printf("\n");
        }
    }
    return 0;
}

/* The rules for indexed sums that ops.def names. */
#ifndef PO_OPS_RULES_SEM_H
#define PO_OPS_RULES_SEM_H

#include "ops/sem/sem.h"

/* reshape.c */
po_status po_sem_reshape(po_sem *sem); /* everything that keeps the data as it is */

/* move.c */
po_status po_sem_transpose(po_sem *sem);
po_status po_sem_slice(po_sem *sem);
po_status po_sem_concat(po_sem *sem);
po_status po_sem_split(po_sem *sem);
po_status po_sem_expand(po_sem *sem);
po_status po_sem_tile(po_sem *sem);
po_status po_sem_pad(po_sem *sem);
po_status po_sem_depth_to_space(po_sem *sem);
po_status po_sem_space_to_depth(po_sem *sem);

/* select.c */
po_status po_sem_gather(po_sem *sem);
po_status po_sem_trilu(po_sem *sem);
po_status po_sem_where(po_sem *sem);

/* conv.c */
po_status po_sem_conv(po_sem *sem);
po_status po_sem_conv_transpose(po_sem *sem);
po_status po_sem_average_pool(po_sem *sem);
po_status po_sem_global_average_pool(po_sem *sem);

/* matmul.c */
po_status po_sem_matmul(po_sem *sem);
po_status po_sem_gemm(po_sem *sem);
po_status po_sem_einsum(po_sem *sem);

/* pointwise.c */
po_status po_sem_add(po_sem *sem); /* Add, Sum */
po_status po_sem_sub(po_sem *sem);
po_status po_sem_mean(po_sem *sem);
po_status po_sem_neg(po_sem *sem);
po_status po_sem_mul(po_sem *sem);
po_status po_sem_div(po_sem *sem);
po_status po_sem_batch_norm(po_sem *sem);

/* reduce.c */
po_status po_sem_reduce_sum(po_sem *sem);
po_status po_sem_reduce_mean(po_sem *sem);
po_status po_sem_cumsum(po_sem *sem);

/* resize.c */
po_status po_sem_resize(po_sem *sem); /* Resize, Upsample */

/* spectral.c */
po_status po_sem_stft(po_sem *sem);

#endif

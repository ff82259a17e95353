/* Convolutions of single taps as matrix products over the channels. Equal everywhere.
 * (The way back is layout/tokens.c.) */
#include "rewrite/deriving.h"

/* Side condition: kernel 1, no padding; a stride drops what it leaves out first. */
po_status po_derive_point(po_deriving *d, po_node_id id) {
    po_conv c;
    if (!po_read_conv(d->from, id, &c) || po_conv_taps(&c) != 1 || po_conv_padded(&c))
        return PO_OK;
    const bool grouped = c.group > 1;
    const po_rt_size *sizes = PO_SIZES({"g", &c.group}, {"h", c.to}, {"s", c.stride});
    po_derive_begin(d, id);
    po_value_id x = po_mk_rearrange(
        d, c.x, grouped ? "n (g c) h*s.. -> n g c (h..)" : "n c h*s.. -> n c (h..)", c.n, sizes);
    po_value_id w =
        po_mk_rearrange(d, c.w, grouped ? "(g o) c 1.. -> g o c" : "o c 1.. -> o c", c.n, sizes);
    x = po_mk_rearrange(d, po_mk_matmul(d, w, x),
                        grouped ? "n g o (h..) -> n (g o) h.." : "n o (h..) -> n o h..", c.n,
                        sizes);
    return po_derive_done(d, po_mk_biased(d, x, c.b, c.n), NULL);
}

package bad

import "C"

// Color is a color (enum ibv_color).
type Color uint8

const (
	ColorRed   Color = C.IBV_COLOR_GREEN // GREEN
	ColorGreen Color = C.IBV_COLOR_RED   // GREEN
	ColorBlue  Color = 7                 // BLUE
	ColorFast  Color = C.IBV_WISH_FAST   // FAST
)

// Wish is what one may wish for (enum ibv_wish).
type Wish uint64

const (
	WishFast  Wish = C.IBV_WISH_FAST
	WishCheap Wish = 1 << 2 // IBV_WISH_CHEAP
)

var wishNames = []flagName{{uint64(WishFast), "FAST"}}

// IBV_WISH_GOOD is in a comment, which does not count.

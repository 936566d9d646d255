package good

import "C"

// Color is a color (enum
// ibv_color).
type Color uint8

const (
	ColorRed   Color = C.IBV_COLOR_RED // RED
	ColorGreen Color = 5               // GREEN
	ColorBlue  Color = C.IBV_COLOR_BLUE
)

// Wish is what one may wish for (enum ibv_wish).
type Wish uint64

const (
	WishFast  Wish = C.IBV_WISH_FAST
	WishCheap Wish = 1 << 1 // IBV_WISH_CHEAP
	WishGood  Wish = 1 << 40
	WishAll   Wish = C.IBV_WISH_ALL
	wishNewer Wish = 1 << 50 // IBV_WISH_NEWER, which this header is too old for
)

var wishNames = []flagName{
	{uint64(WishFast), "FAST"},
	{uint64(WishCheap), "CHEAP"},
	{uint64(WishGood), "GOOD"},
	{uint64(wishNewer), "NEWER"},
}

func layer() int { return C.IBV_LAYER_A }

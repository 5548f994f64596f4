# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""Curves as SVG, for the figures of benchmark programs."""
import math


class Plot:
    """An SVG with two logarithmic axes."""

    LEFT, RIGHT, TOP, BOTTOM = 70, 520, 40, 370

    def __init__(self, title, y_name, x_range, y_range):
        self.x_range, self.y_range = x_range, y_range
        self.parts = ["<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 860 420' font-family='sans-serif' "
                      "font-size='12'>", "<rect width='100%' height='100%' fill='white'/>",
                      f"<text x='{self.LEFT}' y='22' font-size='14'>{title}</text>"]
        x = x_range[0]
        while x <= x_range[1]:
            at = self.x(x)
            name = f"{x}" if x < 1024 else f"{x // 1024}K" if x < 1 << 20 else f"{x >> 20}M"
            self.parts.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='{self.TOP}' y2='{self.BOTTOM}' stroke='#ddd'/>"
                              f"<text x='{at:.1f}' y='388' text-anchor='middle'>{name}</text>")
            x *= 8
        y = y_range[0]
        while y <= y_range[1]:
            at = self.y(y)
            self.parts.append(f"<line x1='{self.LEFT}' x2='{self.RIGHT}' y1='{at:.1f}' y2='{at:.1f}' stroke='#ddd'/>"
                              f"<text x='64' y='{at + 4:.1f}' text-anchor='end'>{y:g}</text>")
            y *= 2
        self.parts.append("<text x='295' y='410' text-anchor='middle'>bytes</text>")
        self.parts.append(f"<text transform='translate(16,210) rotate(-90)' text-anchor='middle'>{y_name}</text>")
        self.names = 60

    def x(self, value):
        low, high = map(math.log2, self.x_range)
        return self.LEFT + (math.log2(value) - low) / (high - low) * (self.RIGHT - self.LEFT)

    def y(self, value):
        low, high = map(math.log2, self.y_range)
        return self.BOTTOM - (math.log2(value) - low) / (high - low) * (self.BOTTOM - self.TOP)

    def inside(self, points):
        return [(x, y) for x, y in sorted(points.items())
                if self.x_range[0] <= x <= self.x_range[1] and self.y_range[0] <= y <= self.y_range[1]]

    def line(self, name, points, colour):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in self.inside(points))
        self.parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.8'/>")
        self.name(name, f"<line x1='530' x2='548' y1='{self.names}' y2='{self.names}' stroke='{colour}' "
                        "stroke-width='1.8'/>")

    def marks(self, name, points):
        for x, y in self.inside(points):
            self.parts.append(f"<circle cx='{self.x(x):.1f}' cy='{self.y(y):.1f}' r='3.5' fill='none' stroke='black'/>")
        self.name(name, f"<circle cx='539' cy='{self.names}' r='3.5' fill='none' stroke='black'/>")

    def level(self, name, value):
        at = self.y(value)
        dashes = "stroke='black' stroke-dasharray='5 4'"
        self.parts.append(f"<line x1='{self.LEFT}' x2='{self.RIGHT}' y1='{at:.1f}' y2='{at:.1f}' {dashes}/>")
        self.name(name, f"<line x1='530' x2='548' y1='{self.names}' y2='{self.names}' {dashes}/>")

    def name(self, text, sign):
        self.parts.append(sign)
        for line in text.split("\n"):
            self.parts.append(f"<text x='556' y='{self.names + 4}'>{line}</text>")
            self.names += 18

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts + ["</svg>"]) + "\n")
